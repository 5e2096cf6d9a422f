//! Tests of the files of a workflow: names, links, and the places of documents.

use std::os::unix::fs::symlink;

use super::*;

#[test]
fn workflow_files_are_listed_and_shown_with_given_path() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(place.path().join("C.md")).expect("made");
    for name in ["B.md", "A.md", " D.md"] {
        std::fs::write(place.path().join(name), "x").expect("written");
    }
    let directory = WorkflowDir::open(place.path()).expect("opened");
    assert_eq!(directory.names(), Ok(vec![state("A.md"), state("B.md")]));
    let shown = |given: &str| directory.clone().shown_as(Path::new(given)).path(&state("A.md"));
    assert_eq!((shown("."), shown("w/tour")), ("A.md".to_owned(), "w/tour/A.md".to_owned()));
}

fn state(name: &str) -> StateName {
    StateName::parse(name).expect("a state")
}

#[test]
fn only_regular_files_of_the_directory_are_read() {
    let place = tempfile::tempdir().expect("a directory");
    let scope = place.path().join("scope");
    std::fs::create_dir_all(scope.join("FOLDER.md")).expect("made");
    std::fs::write(place.path().join("secret"), "s").expect("written");
    std::fs::write(scope.join("A.md"), "a").expect("written");
    std::fs::write(scope.join("BAD.md"), b"one\ntwo \xff").expect("written");
    symlink(place.path().join("secret"), scope.join("OUT.md")).expect("linked");
    symlink("A.md", scope.join("IN.md")).expect("linked");
    symlink("LOOP.md", scope.join("LOOP.md")).expect("linked");
    let directory = WorkflowDir::open(&scope).expect("opened");
    let message = |name| directory.read(&state(name)).expect_err(name).to_string();

    assert_eq!(directory.read(&state("A.md")), Ok("a".into()));
    assert_eq!(directory.read(&state("IN.md")), Ok("a".into()));
    assert!(message("OUT.md").contains("leads out of the workflow's scope"));
    assert!(message("FOLDER.md").contains("not a regular file"));
    assert!(message("a.MD").ends_with("there is no such file in the workflow; did you mean A.md?"));
    assert!(message("BAD.md").contains("BAD.md:2:5: this is not UTF-8 text"));
    assert!(matches!(directory.read(&state("LOOP.md")), Err(Error::Unreadable { .. })));
}
#[test]
fn document_is_read_from_scope_first_then_workspace() {
    let place = tempfile::tempdir().expect("a directory");
    let (scope, workspace) = (place.path().join("scope"), place.path().join("workspace"));
    std::fs::create_dir_all(scope.join("refs")).expect("made");
    std::fs::create_dir_all(workspace.join("refs")).expect("made");
    std::fs::write(place.path().join("secret"), "s").expect("written");
    std::fs::write(scope.join("refs/a.md"), "of the scope").expect("written");
    std::fs::write(workspace.join("refs/a.md"), "of the workspace").expect("written");
    std::fs::write(workspace.join("refs/b.md"), "of the workspace").expect("written");
    symlink(place.path().join("secret"), scope.join("refs/out.md")).expect("linked");
    let alone = WorkflowDir::open(&scope).expect("opened");
    let both = alone.clone().with_workspace(&workspace).expect("opened");
    let message = |path| both.document(path).expect_err(path).to_string();

    assert_eq!(both.document("refs/a.md"), Ok("of the scope".into()));
    assert_eq!(both.document("./refs/b.md"), Ok("of the workspace".into()));
    assert!(matches!(alone.document("refs/b.md"), Err(Error::NoDocument { .. })));
    let secret = place.path().join("secret").display().to_string();
    for path in ["../secret", "refs/../../secret", "refs/out.md", &secret] {
        assert!(message(path).contains("leads out of the workflow's scope"), "{path}");
    }
    assert!(message("refs").contains("not a regular file"));
    let (scope, workspace) = (both.root().display(), workspace.canonicalize().expect("there"));
    let none = format!("there is no refs/c.md in {scope}, nor in {}", workspace.display());
    assert_eq!(message("refs/c.md"), none);
}

#[test]
fn document_of_plugin_is_read_between_scope_and_workspace() {
    let place = tempfile::tempdir().expect("a directory");
    let plugin = place.path().join("plugin");
    let (scope, workspace) = (plugin.join("skills/one"), place.path().join("workspace"));
    for folder in
        [&scope, &plugin.join("lib"), &plugin.join(".claude-plugin"), &workspace.join("lib")]
    {
        std::fs::create_dir_all(folder).expect("made");
    }
    std::fs::write(place.path().join("secret"), "s").expect("written");
    std::fs::write(plugin.join("lib/a.md"), "of the plugin").expect("written");
    std::fs::write(workspace.join("lib/a.md"), "of the workspace").expect("written");
    std::fs::write(workspace.join("lib/b.md"), "of the workspace").expect("written");
    symlink(place.path().join("secret"), plugin.join("lib/out.md")).expect("linked");
    let opened = WorkflowDir::open(&scope).expect("opened");
    let opened = opened.with_workspace(&workspace).expect("opened");
    assert_eq!(opened.document("lib/a.md"), Ok("of the plugin".into()));
    assert_eq!(opened.document("lib/b.md"), Ok("of the workspace".into()));
    assert!(opened.is_in_plugin("lib/a.md") && !opened.is_in_plugin("lib/b.md"));
    assert!(matches!(opened.document("lib/out.md"), Err(Error::Outside { .. })));
    assert!(matches!(opened.document("../lib/a.md"), Err(Error::Outside { .. })));
    let none = opened.document("lib/c.md").expect_err("there is none").to_string();
    assert_eq!(none.matches(", nor in ").count(), 2, "{none}");
}

#[test]
fn captured_files_are_not_read_again_and_others_are_read_once() {
    let place = tempfile::tempdir().expect("a directory");
    let root = place.path().join("root");
    std::fs::create_dir_all(root.join("sub")).expect("made");
    let write = |name: &str, text: &str| std::fs::write(root.join(name), text).expect("written");
    for name in ["A.md", "sub/B.md", "RUN.sh"] {
        write(name, "captured");
    }
    let capture = Arc::new(WorkflowCapture::of(&root, Path::new("/nowhere")).expect("captured"));
    write("LATER.md", "first");
    let directory = WorkflowDir::open(&root).expect("opened").captured(&capture);
    let below = directory.below(&Folder::parse("sub").expect("a folder")).expect("below");
    assert_eq!(directory.read(&state("LATER.md")), Ok("first".into()));
    for name in ["A.md", "sub/B.md", "LATER.md"] {
        write(name, "changed");
    }
    std::fs::remove_file(root.join("RUN.sh")).expect("removed");

    assert_eq!(directory.read(&state("A.md")), Ok("captured".into()));
    assert_eq!(below.read(&state("B.md")), Ok("captured".into()));
    assert_eq!(directory.read_path("sub/B.md"), Ok("captured".into()));
    assert_eq!(directory.read(&state("LATER.md")), Ok("first".into()));
    assert_eq!(directory.check(&state("RUN.sh")), Ok(()));
    assert!(!directory.is_executable(&state("RUN.sh")));
    assert!(matches!(directory.read(&state("GONE.md")), Err(Error::Missing { .. })));
    let fresh = WorkflowDir::open(&root).expect("opened");
    assert_eq!(fresh.read(&state("A.md")), Ok("changed".into()));
}
