//! The log of a run: one history, whole, and each line once.

use raymond::engine::shared_log::LogLine;
use raymond::engine::{Engine, EngineError};

use crate::support::{lines, new_run_id, started_run, texts};

pub(crate) fn lines_are_read_as_they_were_appended(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    one.append(&lease, &[]).expect("nothing");
    one.append(&lease, &lines(2, &["b", "c"])).expect("lines");
    one.append(&lease, &lines(4, &["d"])).expect("a line");
    assert_eq!(texts(other, &lease.run), ["first", "b", "c", "d"]);
    assert_eq!(other.read(&lease.run, 2, 1), Ok(lines(3, &["c"])));
    assert_eq!(other.read(&lease.run, 4, 10), Ok(Vec::new()));
}

pub(crate) fn an_append_is_made_again_without_harm(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    let new = lines(2, &["b", "c"]);
    for _ in 0..3 {
        one.append(&lease, &new).expect("the answer was lost");
        other.append(&lease, &new).expect("it comes over another connection");
    }
    one.append(&lease, &lines(4, &["d"])).expect("a line");
    one.append(&lease, &new).expect("it comes late");
    assert_eq!(texts(other, &lease.run), ["first", "b", "c", "d"]);
}

pub(crate) fn a_started_append_is_completed(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    one.append(&lease, &lines(2, &["b"])).expect("a line");
    one.append(&lease, &lines(2, &["b", "c", "d"])).expect("the same line, and more");
    assert_eq!(texts(other, &lease.run), ["first", "b", "c", "d"]);
}

pub(crate) fn other_lines_do_not_replace_any(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    one.append(&lease, &lines(2, &["b", "c"])).expect("lines");
    for wrong in [lines(2, &["x"]), lines(2, &["x", "c"]), lines(3, &["x", "d"])] {
        let error = one.append(&lease, &wrong).expect_err("there is another one");
        assert!(matches!(error, EngineError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(lease.run.as_str()), "{error}");
    }
    assert_eq!(texts(other, &lease.run), ["first", "b", "c"]);
}

pub(crate) fn gaps_are_refused(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    let jumping =
        vec![LogLine { seq: 2, text: "b".to_owned() }, LogLine { seq: 4, text: "d".to_owned() }];
    for wrong in [lines(3, &["c"]), lines(0, &["x"]), jumping] {
        let error = one.append(&lease, &wrong).expect_err("a gap");
        assert!(matches!(error, EngineError::Damaged { .. }), "{error}");
    }
    assert_eq!(texts(other, &lease.run), ["first"]);
}

pub(crate) fn a_long_log_is_read_in_pages(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    let all: Vec<String> = (2..=10_000).map(|seq| format!(r#"{{"seq": {seq}}}"#)).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    for (batch, first) in all.chunks(1_000).zip((2..).step_by(1_000)) {
        one.append(&lease, &lines(first, batch)).expect("a batch");
    }
    let (mut read, mut pages) = (Vec::new(), 0);
    loop {
        let page = other.read(&lease.run, read.len() as u64, 777).expect("a page");
        if page.is_empty() {
            break;
        }
        read.extend(page);
        pages += 1;
    }
    assert_eq!((pages, read.len()), (13, 10_000));
    assert_eq!(read[0].text, "first");
    assert_eq!(read[1..], lines(2, &all));
    assert_eq!(other.read(&new_run_id(), 0, 1).map_err(|error| error.is_passing()), Err(false));
}

pub(crate) fn texts_are_kept_byte_by_byte(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    let long = "x".repeat(2_000_000);
    let odd =
        ["", r"\ \\ \u0000 \N '' $1 {NULL}", "NULL", "\t ü 漢字 🦀 \u{7f}\u{1}", "a\"b,c", &long];
    one.append(&lease, &lines(2, &odd)).expect("lines");
    one.append(&lease, &lines(2, &odd)).expect("the same lines");
    assert_eq!(texts(other, &lease.run)[1..], odd);
}
