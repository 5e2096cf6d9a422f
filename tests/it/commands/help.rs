//! Help at the width of the terminal, and manual pages.

use std::fs;

use crate::support::pair;

#[test]
fn help_wraps_at_the_width_of_the_terminal() {
    let test = pair();
    let mut screen = test.on_screen(&["resume", "--help"], (400, 60));
    assert_eq!(screen.wait_for_exit(), Some(0));
    let written = screen.all_written();
    let lines = console::strip_ansi_codes(&written);
    let wide: Vec<&str> =
        lines.lines().filter(|line| line.trim_end().chars().count() > 60).collect();
    assert_eq!(wide, Vec::<&str>::new(), "{lines}");
}

#[test]
fn man_writes_a_page_for_each_command() {
    let test = pair();
    test.raymond(&["man", "pages/man1"]).ok().stderr_has("man pages/man1/raymond.1");
    let page =
        |name: &str| fs::read_to_string(test.flow().join("pages/man1").join(name)).expect("a page");
    assert!(page("raymond.1").contains("raymond\\-run(1)"));
    assert!(page("raymond-clean.1").contains("\\-\\-older\\-than"));
    assert!(page("raymond-workflow-watch.1").contains(".TH"));
    assert!(!test.flow().join("pages/man1/raymond-help.1").exists());
}
