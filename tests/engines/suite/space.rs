//! The space of runs: commands and contents.

use std::fmt::Write as _;

use raymond::engine::connect::SharedCommand;
use raymond::engine::{Engine, EngineError};
use sha2::{Digest as _, Sha256};

use crate::support::{new_run_id, started_run};

fn command(name: &str, content: &[u8]) -> SharedCommand {
    SharedCommand { name: name.to_owned(), content: content.to_vec() }
}

pub(crate) fn commands_wait_in_order(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    assert_eq!(one.commands(&lease.run), Ok(Vec::new()));
    let all = [command("B", b"1"), command("a-1", &[0, 255, 10]), command("a-2", b"")];
    for one in all.iter().rev() {
        other.leave_command(&lease.run, one).expect("it is left");
    }
    assert_eq!(one.commands(&lease.run), Ok(all.to_vec()));
}

pub(crate) fn a_command_is_left_once(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    other.leave_command(&lease.run, &command("a", b"1")).expect("it is left");
    other.leave_command(&lease.run, &command("a", b"1")).expect("the answer was lost");
    other.leave_command(&lease.run, &command("a", b"2")).expect("the name is taken");
    assert_eq!(one.commands(&lease.run), Ok(vec![command("a", b"1")]));
}

pub(crate) fn a_removed_command_does_not_come_back(one: &dyn Engine, other: &dyn Engine) {
    let lease = started_run(one);
    other.leave_command(&lease.run, &command("a", b"1")).expect("it is left");
    one.remove_command(&lease, "a").expect("it is removed");
    one.remove_command(&lease, "a").expect("the answer was lost");
    one.remove_command(&lease, "never").expect("nothing to remove");
    other.leave_command(&lease.run, &command("a", b"1")).expect("it was cut off, and comes late");
    assert_eq!(one.commands(&lease.run), Ok(Vec::new()));
    other.leave_command(&lease.run, &command("b", b"2")).expect("it is left");
    assert_eq!(one.commands(&lease.run), Ok(vec![command("b", b"2")]));
}

pub(crate) fn commands_need_a_run(one: &dyn Engine, other: &dyn Engine) {
    let run = new_run_id();
    let error = one.leave_command(&run, &command("a", b"1")).expect_err("no run");
    assert!(matches!(error, EngineError::NoSuchRun { .. }), "{error}");
    let error = other.commands(&run).expect_err("no run");
    assert!(matches!(error, EngineError::NoSuchRun { .. }), "{error}");
}

fn checksum(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("a text");
        digits
    })
}

pub(crate) fn contents_are_kept_by_their_checksums(one: &dyn Engine, other: &dyn Engine) {
    let large: Vec<u8> =
        (0..5_000_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    // An engine may keep small contents in another way than large ones.
    let edge = 64 * 1_024;
    for content in [&large[..], b"", b"small", &large[..edge], &large[..=edge]] {
        let sha256 = checksum(content);
        assert_eq!(other.blob(&sha256, u64::MAX), Ok(None));
        one.put_blob(&sha256, content).expect("it is kept");
        other.put_blob(&sha256, content).expect("it is kept already");
        let kept = other.blob(&sha256, u64::MAX).expect("an answer").expect("a content");
        assert!(kept == content, "{} bytes, not {}", kept.len(), content.len());
        let exact = other.blob(&sha256, content.len() as u64).expect("an answer");
        assert!(exact.is_some_and(|exact| exact == content));
    }
    for most in [4_999_999, 10] {
        let refused = other.blob(&checksum(&large), most).expect_err("it is larger").to_string();
        assert!(refused.contains(&format!("at most {most} are loaded")), "{refused}");
    }
}
