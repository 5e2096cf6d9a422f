//! The signals that some terminals show outside their text: desktop notifications, progress, and the window's title. Pure.
//!
//! A terminal that does not know such a sequence may print it, so each is written only to terminals that are known to have
//! it. A multiplexer stands between, and which terminal is behind it is not known: then none is written.

use crate::domain::printable::flat;

/// The maximum length of a notification, in bytes.
const MAX_NOTICE_BYTES: usize = 200;

/// The maximum length of a title, in bytes.
const MAX_TITLE_BYTES: usize = 100;

/// The form of desktop notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoticeForm {
    /// OSC 9, of iTerm2.
    Osc9,
    /// OSC 777, of rxvt.
    Osc777,
}

/// The signals that a terminal has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TerminalSignals {
    notice: Option<NoticeForm>,
    has_progress: bool,
    has_title: bool,
}

/// The progress that a terminal shows, as in its tab or in the task bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownProgress {
    /// Something is done, nobody knows how much is left.
    Busy,
    /// The share that is done, in per cent.
    Percent(u64),
    /// The share that is done, in per cent, while somebody is needed.
    NeedsSomeone(u64),
    /// The end: the terminal shows no progress any more.
    Over,
}

impl TerminalSignals {
    /// Returns the signals of the terminal that environment variables name.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let named = |name: &str| variable(name).unwrap_or_default();
        let (term, program) = (named("TERM"), named("TERM_PROGRAM"));
        let is_multiplexed = variable("TMUX").is_some()
            || variable("STY").is_some()
            || ["tmux", "screen"].iter().any(|name| term.starts_with(name));
        if is_multiplexed || ["", "dumb", "linux"].contains(&term.as_str()) {
            return Self::default();
        }
        let is_windows = variable("WT_SESSION").is_some() || named("ConEmuANSI") == "ON";
        let (notice, has_progress) = match (program.as_str(), term.as_str()) {
            ("ghostty" | "WezTerm", _) | (_, "xterm-ghostty") => (Some(NoticeForm::Osc777), true),
            ("iTerm.app", _) | (_, "xterm-kitty") => (Some(NoticeForm::Osc9), true),
            (_, "foot" | "foot-extra" | "rxvt-unicode-256color") => {
                (Some(NoticeForm::Osc777), false)
            }
            _ => (None, is_windows),
        };
        Self { notice, has_progress, has_title: true }
    }

    /// Returns the sequence of a desktop notification; nothing if the terminal has none.
    pub fn notice(self, title: &str, text: &str) -> String {
        let (title, text) = (plain(title, MAX_TITLE_BYTES), plain(text, MAX_NOTICE_BYTES));
        match self.notice {
            None => String::new(),
            Some(NoticeForm::Osc9) => osc(&format!("9;{title}: {text}")),
            // A semicolon would end the title.
            Some(NoticeForm::Osc777) => {
                osc(&format!("777;notify;{};{text}", title.replace(';', ",")))
            }
        }
    }

    /// Returns the sequence that shows progress.
    pub fn progress(self, progress: ShownProgress) -> String {
        if !self.has_progress {
            return String::new();
        }
        osc(&match progress {
            ShownProgress::Busy => "9;4;3;0".to_owned(),
            ShownProgress::Percent(percent) => format!("9;4;1;{}", percent.min(100)),
            ShownProgress::NeedsSomeone(percent) => format!("9;4;4;{}", percent.min(100)),
            ShownProgress::Over => "9;4;0;0".to_owned(),
        })
    }

    /// Returns the sequence that keeps the title of the window, to be put back at the end.
    pub fn keep_title(self) -> &'static str {
        if self.has_title { "\u{1b}[22;2t" } else { "" }
    }

    /// Returns the sequence that sets the title of the window.
    pub fn title(self, title: &str) -> String {
        if self.has_title {
            osc(&format!("2;{}", plain(title, MAX_TITLE_BYTES)))
        } else {
            String::new()
        }
    }

    /// Returns the sequence that puts the kept title back.
    pub fn put_title_back(self) -> &'static str {
        if self.has_title { "\u{1b}[23;2t" } else { "" }
    }
}

/// Returns an operating system command, with the end that the standard gives it.
fn osc(content: &str) -> String {
    format!("\u{1b}]{content}\u{1b}\\")
}

/// Returns a text in one line, without anything that could end the sequence.
fn plain(text: &str, most: usize) -> String {
    flat(text, most).chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signals(variables: &[(&str, &str)]) -> TerminalSignals {
        TerminalSignals::of(|name| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn signals_are_those_that_the_terminal_is_known_to_have() {
        let kitty = signals(&[("TERM", "xterm-kitty")]);
        assert_eq!(kitty.notice("run r", "needs you"), "\u{1b}]9;run r: needs you\u{1b}\\");
        assert_eq!(kitty.progress(ShownProgress::Percent(140)), "\u{1b}]9;4;1;100\u{1b}\\");
        assert_eq!(kitty.progress(ShownProgress::NeedsSomeone(7)), "\u{1b}]9;4;4;7\u{1b}\\");
        let foot = signals(&[("TERM", "foot")]);
        assert_eq!(foot.notice("a;b", "c;d"), "\u{1b}]777;notify;a,b;c;d\u{1b}\\");
        assert_eq!(foot.progress(ShownProgress::Busy), "");
        let windows = signals(&[("TERM", "xterm-256color"), ("WT_SESSION", "x")]);
        assert_eq!(
            (windows.notice("a", "b"), windows.progress(ShownProgress::Over)),
            (String::new(), "\u{1b}]9;4;0;0\u{1b}\\".to_owned())
        );
        let plain = signals(&[("TERM", "xterm-256color")]);
        assert_eq!(
            (plain.notice("a", "b"), plain.title("t")),
            (String::new(), "\u{1b}]2;t\u{1b}\\".to_owned())
        );
        for none in [
            &[][..],
            &[("TERM", "dumb")],
            &[("TERM", "xterm-kitty"), ("TMUX", "1")],
            &[("TERM", "screen-256color")],
        ] {
            assert_eq!(signals(none), TerminalSignals::default());
            assert_eq!(signals(none).title("t") + signals(none).keep_title(), "");
        }
    }

    #[test]
    fn texts_cannot_end_a_sequence() {
        let kitty = signals(&[("TERM", "xterm-kitty")]);
        let notice = kitty.notice("r", "a\u{7}b\u{1b}\\c\u{9c}d\ne");
        assert_eq!(notice.chars().filter(|c| c.is_control()).count(), 2, "{notice:?}");
    }
}
