//! The samples that are programs, run by their scripts in all the ways they can go; signals from outside are
//! sent while they run.

mod alone;
mod gate;
mod planner_worker_review;
mod sample_program;
mod standing_reviewer;

use sample_program::{SampleProgram, raymond};

use super::{code, text, told, workflows};

/// The folders of the samples that are programs.
pub(super) const NAMES: [&str; 6] = [
    "planner-worker-review",
    "self-review",
    "best-of-two",
    "three-reviewers",
    "gate",
    "standing-reviewer",
];

#[test]
fn check_finds_no_problems_in_each_sample_program() {
    for name in NAMES {
        let out = raymond(&["check", text(&workflows().join(name))]);
        assert_eq!(code(&out), 0, "{}", told(&out));
        assert!(told(&out).ends_with("2 files, no problems\n"), "{name}: {}", told(&out));
    }
}

#[test]
fn drawing_of_each_sample_program_has_its_states() {
    for name in NAMES {
        let out = raymond(&["graph", text(&workflows().join(name))]);
        assert_eq!(code(&out), 0, "{}", told(&out));
        let drawn = String::from_utf8_lossy(&out.stdout);
        let program = SampleProgram::new(name).program();
        let states = program.lines().filter_map(|line| line.trim().strip_prefix("(state "));
        for state in states.filter_map(|rest| rest.split_whitespace().next()) {
            assert!(drawn.contains(&format!("\"{state}\"")), "{name} without {state}: {drawn}");
        }
    }
}
