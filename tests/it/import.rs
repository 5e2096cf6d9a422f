//! `raymond import`: workflows in one file become folders, and nothing else is written.

use std::fs;
use std::io::{Cursor, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::support::Test;

const ONE_FILE: &str = "id: review\nname: Review\nstates:\n  START: |\n    Look. <goto>FIX</goto> or <result>fine</result>\n  FIX:\n    allowed_transitions:\n      - { tag: result, payload: DONE }\n    prompt: Fix it.\n";

/// Returns a zip with these files.
fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, content) in files {
        zip.start_file(*name, stored).expect("an entry");
        zip.write_all(content).expect("written");
    }
    zip.finish().expect("a zip").into_inner()
}

#[test]
fn imported_yaml_is_a_folder_that_passes_check() {
    let test = Test::new().file("review.yaml", ONE_FILE.as_bytes());
    let made = test.raymond(&["import", "review.yaml"]);
    made.ok().stderr_has("`id`: raymond.yaml has no such key").stderr_has("3 files");
    assert_eq!(made.stdout, "review\n");
    let imported =
        |name: &str| fs::read_to_string(test.flow().join("review").join(name)).expect("imported");
    assert_eq!(imported("raymond.yaml"), "name: Review\n");
    assert_eq!(
        imported("FIX.md"),
        "---\nallowed_transitions:\n  - { tag: result, payload: DONE }\n---\nFix it.\n"
    );
    test.raymond(&["check", "review", "--strict"]).ok();
    fs::write(test.flow().join("review/FIX.md"), "mine").expect("written");
    test.raymond(&["import", "review.yaml"]).code(64).stderr_has("review exists");
    assert_eq!(imported("FIX.md"), "mine", "nothing is overwritten");
    let wrong = Test::new().file("x.yaml", b"name: x\n");
    wrong.raymond(&["import", "x.yaml"]).code(65).stderr_has("x.yaml:1:1: RF007");
    assert!(!wrong.flow().join("x").exists());
}

#[test]
fn imported_zip_keeps_its_files_without_the_folder_around_them() {
    let zip = zipped(&[("flow/START.md", b"<result>x</result>"), ("flow/lib/A.md", b"a")]);
    let test = Test::new().file("flow.zip", &zip);
    test.raymond(&["import", "flow.zip", "--output", "made"]).ok().stderr_has("2 files");
    let imported = |name: &str| fs::read_to_string(test.flow().join("made").join(name));
    assert_eq!(imported("START.md").expect("imported"), "<result>x</result>");
    assert_eq!(imported("lib/A.md").expect("imported"), "a");
}

#[test]
fn zip_that_could_write_elsewhere_or_is_too_large_is_refused() {
    let mut linked = ZipWriter::new(Cursor::new(Vec::new()));
    linked.add_symlink("A.md", "/etc/passwd", SimpleFileOptions::default()).expect("a link");
    let linked = linked.finish().expect("a zip").into_inner();
    let long = vec![b' '; 17 * 1024 * 1024];
    let many: Vec<String> = (0..2001).map(|index| format!("{index}.md")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
    let table: [(Vec<u8>, &str); 9] = [
        (zipped(&[("../A.md", b"x")]), "leads out of the folder"),
        (zipped(&[("/etc/A.md", b"x")]), "leads out of the folder"),
        (zipped(&[("a\\..\\A.md", b"x")]), "leads out of the folder"),
        (zipped(&[("A.md", b"x"), ("a.md", b"y")]), "two entries would be this file"),
        (zipped(&[("A.md", &long)]), "too long"),
        (zipped(&many), "2001 entries"),
        (
            zipped(&[("A.md", b"x"), (".github/workflows/x.yml", b"y")]),
            "programs obey hidden files",
        ),
        (zipped(&[("flow/A.md", b"x"), ("flow/CLAUDE.md", b"y")]), "programs obey hidden files"),
        (linked, "not a regular file"),
    ];
    for (zip, why) in table {
        let test = Test::new().file("bad.zip", &zip);
        test.raymond(&["import", "bad.zip"]).code(65).stderr_has(why);
        assert!(!test.flow().join("bad").exists(), "{why}");
    }
    let yaml = Test::new().file("bad.yaml", b"states: { CLAUDE: x }\n");
    yaml.raymond(&["import", "bad.yaml"]).code(65).stderr_has("CLAUDE.md: programs obey");
    let broken = Test::new().file("bad.zip", b"PK\x03\x04nothing");
    broken.raymond(&["import", "bad.zip"]).code(65).stderr_has("cannot be read");
}
