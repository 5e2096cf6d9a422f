//! Tests of pinned files: what is read when the folder or the copy changes.

use super::*;
use crate::capture::WorkflowCapture;
use crate::workflow::WorkflowDir;
use raymond_lang::source::WorkflowSource;

/// A workflow's folder and the copy that a run made of it.
struct Scene {
    place: tempfile::TempDir,
}

impl Scene {
    fn new(files: &[(&str, &str)]) -> Self {
        let scene = Self { place: tempfile::tempdir().expect("a directory") };
        for (name, content) in files {
            scene.edit(name, content);
        }
        let capture = WorkflowCapture::of(&scene.live(), Path::new("/nowhere")).expect("read");
        capture.write(&scene.place.path().join("copy")).expect("written");
        scene
    }

    fn live(&self) -> PathBuf {
        self.place.path().join("live")
    }

    fn edit(&self, name: &str, content: &str) {
        let path = self.live().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, content).expect("written");
    }

    fn directory(&self, pins: &WorkflowPins, is_live: bool) -> WorkflowDir {
        let copy = self.place.path().join("copy").canonicalize().expect("real");
        let live = self.live().canonicalize().expect("real");
        let pinned = PinnedFiles::new(pins.clone(), &copy, &live, is_live);
        WorkflowDir::open(&copy).expect("opened").shown_as(Path::new("flow")).pinned(pinned)
    }

    fn pins(&self) -> WorkflowPins {
        let copy = self.place.path().join("copy");
        WorkflowCapture::of(&copy, Path::new("/nowhere")).expect("read").pins()
    }
}

fn state(name: &str) -> StateName {
    StateName::parse(name).expect("a state")
}

#[test]
fn run_reads_pinned_files_despite_later_edits() {
    let scene = Scene::new(&[("A.md", "one"), ("sub/B.md", "two"), ("g.yaml", "g")]);
    let pins = scene.pins();
    let directory = scene.directory(&pins, false);
    scene.edit("A.md", "changed");
    scene.edit("evil.yaml", "added");
    std::fs::remove_file(scene.live().join("sub/B.md")).expect("removed");
    assert_eq!(directory.read(&state("A.md")), Ok("one".to_owned()));
    assert_eq!(directory.read_path("sub/B.md"), Ok("two".to_owned()));
    let added = source::Error::NotPinned { path: "flow/evil.yaml".to_owned() };
    assert_eq!(directory.check(&state("evil.yaml")), Err(added.clone()));
    assert_eq!(directory.read(&state("evil.yaml")), Err(added));
    assert!(directory.is_as_pinned(&state("A.md")));
}

#[test]
fn fifo_in_place_of_a_file_does_not_block() {
    let scene = Scene::new(&[("A.md", "one"), ("b.sh", "two")]);
    let pins = scene.pins();
    let directory = scene.directory(&pins, false);
    for name in ["A.md", "b.sh"] {
        std::fs::remove_file(scene.live().join(name)).expect("removed");
        plain_file::make_fifo(&scene.live().join(name));
    }
    assert_eq!(directory.read(&state("A.md")), Ok("one".to_owned()));
    assert_eq!(directory.changed_file_in("sh b.sh"), Some("b.sh".to_owned()));
    let copy = scene.place.path().join("copy/b.sh");
    std::fs::remove_file(&copy).expect("removed");
    plain_file::make_fifo(&copy);
    directory
        .executable_copy(&scene.live().canonicalize().expect("real").join("b.sh"))
        .expect_err("a FIFO");
    assert_eq!(kept_text(&scene.place.path().join("copy"), "b.sh"), "");
    let list = scene.place.path().join("list.json");
    plain_file::make_fifo(&list);
    load(&list).expect_err("a FIFO");
}

#[test]
fn live_mode_rereads_only_prompts() {
    let scene = Scene::new(&[("A.md", "one"), ("g.yaml", "g")]);
    let directory = scene.directory(&scene.pins(), true);
    assert!(directory.is_as_pinned(&state("A.md")));
    scene.edit("A.md", "changed");
    scene.edit("NEW.md", "added");
    scene.edit("g.yaml", "changed");
    scene.edit("new.yaml", "added");
    assert_eq!(directory.read(&state("A.md")), Ok("changed".to_owned()));
    assert_eq!(directory.read(&state("NEW.md")), Ok("added".to_owned()));
    assert_eq!(directory.read(&state("g.yaml")), Ok("g".to_owned()));
    assert!(matches!(directory.read(&state("new.yaml")), Err(source::Error::NotPinned { .. })));
    assert!(!directory.is_as_pinned(&state("A.md")) && !directory.is_as_pinned(&state("NEW.md")));
}

#[test]
fn changed_pinned_copy_is_not_used() {
    let scene = Scene::new(&[("A.md", "one")]);
    let pins = scene.pins();
    let directory = scene.directory(&pins, false);
    directory.check_copy().expect("whole");
    for planted in ["__pycache__/helper.pyc", "node_modules/x/index.js", "more"] {
        let path = scene.place.path().join("copy").join(planted);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(&path, "evil").expect("planted");
        directory.check_copy().expect_err(planted);
        std::fs::remove_file(&path).expect("removed");
    }
    let copied = scene.place.path().join("copy/A.md");
    std::fs::remove_file(&copied).expect("removed");
    std::fs::write(&copied, "evil").expect("written");
    assert_eq!(directory.read(&state("A.md")), Ok("one".to_owned()), "the original is as it was");
    scene.edit("A.md", "evil");
    let error = directory.read(&state("A.md")).expect_err("refused").to_string();
    assert!(error.contains("flow/A.md: the run's copy of this file was changed"), "{error}");
    std::fs::write(scene.place.path().join("copy/B.md"), "planted").expect("written");
    assert!(matches!(directory.read(&state("B.md")), Err(source::Error::NotPinned { .. })));
}

#[test]
fn list_with_a_path_out_of_the_folder_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let list = place.path().join("list.json");
    for path in ["/etc/x", "../x", "a/../x", "a//x", "./x", "a/", ""] {
        let pin = raymond_model::sealed_terms::PinnedFile {
            checksum: String::new(),
            size: 0,
            is_executable: false,
        };
        let files = [(path.to_owned(), pin)].into_iter().collect();
        save(&list, &WorkflowPins { version: PINS_VERSION, files }).expect("written");
        let why = load(&list).expect_err(path).to_string();
        assert!(why.contains("is not a path below the workflow's folder"), "{why}");
    }
}
