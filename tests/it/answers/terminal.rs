//! Questions on a terminal, where a person is asked at once.

use super::{answered, graph};

const SIZE: (u16, u16) = (24, 100);

#[test]
fn terminal_asks_questions_in_sequence() {
    let test = graph();
    let mut screen = test.on_screen(&["run", ".", "--id", "t"], SIZE);
    screen.wait_for(&["asks (Type): Which kind of source?", "1  git  Git repository", "1-2 ("]);
    screen.keys("svm\u{7f}n").wait_for(&["1-2 (Ctrl-D: leave it open): svn_"]);
    screen.keys("\r").wait_for(&["WF504 `svn` is not an answer to ask_type: use one of git, web"]);
    screen.keys("2\r").wait_for(&["asks (Name): What is it called?", "or a text of your own"]);
    screen.keys("Zoë\r").wait_for(&["A web source called Zoë."]);
    assert_eq!(screen.wait_for_exit(), Some(0));
    assert_eq!(answered(&test), ["web", "other"]);
    assert!(!screen.text().contains("leave it open"), "{}", screen.text());
}

#[test]
fn ctrl_d_leaves_question_open() {
    let test = graph();
    let mut screen = test.on_screen(&["run", ".", "--id", "t"], SIZE);
    screen.wait_for(&["leave it open"]).keys("half\u{15}\u{4}");
    assert_eq!(screen.wait_for_exit(), Some(2));
    screen.wait_for(&["raymond answer t ask_type=git"]);
    test.resume(&["--answer", "ask_type=git", "--answer", "ask_name=main"]).ok();
}

#[test]
fn answer_from_another_terminal_withdraws_prompt() {
    let test = graph();
    let mut screen = test.on_screen(&["run", ".", "--id", "t"], SIZE);
    screen.wait_for(&["leave it open"]).keys("we").wait_for(&["we_"]);
    test.raymond(&["answer", "t", "ask_type=git"]).ok();
    screen.wait_for(&["ask_type: answered git", "asks (Name): What is it called?"]);
    screen.wait_until("an empty line", |text| text.contains("leave it open): _"));
    screen.keys("1\n").wait_for(&["A git source called"]);
    assert_eq!(screen.wait_for_exit(), Some(0));
    assert_eq!(answered(&test), ["git", "main"]);
}

#[test]
fn ctrl_c_at_prompt_interrupts_run() {
    let test = graph();
    let mut screen = test.on_screen(&["run", ".", "--id", "t"], SIZE);
    screen.wait_for(&["leave it open"]).keys("\u{3}");
    assert_eq!(screen.wait_for_exit(), Some(130));
    test.raymond(&["answer", "t", "ask_type=git", "--json"]).ok();
}

#[test]
fn question_answered_ahead_of_time_is_not_asked() {
    let test = graph();
    let arguments = ["run", ".", "--id", "t", "--answer", "ask_type=git"];
    let mut screen = test.on_screen(&arguments, SIZE);
    screen.wait_for(&["asks (Name)"]).keys("main\r");
    assert_eq!(screen.wait_for_exit(), Some(0));
    assert!(screen.written().contains("answered git, as given ahead of time"));
}
