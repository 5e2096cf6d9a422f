//! The title and the progress of a run, for what a terminal shows outside its text. Pure.

use crate::plugin::fan_out::FanOuts;
use crate::plugin::terminal::signals::ShownProgress;

/// The status of a run in a window's title, tab or task bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowStatus {
    /// The title.
    pub title: String,
    /// The progress.
    pub progress: ShownProgress,
}

impl WindowStatus {
    /// Returns the status of a run with these agents. Of a single agent nobody knows how far it is.
    pub fn of(run: &str, agents: &FanOuts) -> Self {
        let (live, ended) = agents.sum();
        let all = live.running + live.queued + live.waiting + live.for_person + ended.ended;
        let percent = (all > 1).then(|| ended.ended * 100 / all);
        let share = percent.map(|percent| format!(" · {percent}%")).unwrap_or_default();
        let percent = percent.and_then(|percent| u64::try_from(percent).ok());
        let (needs, progress) = match (live.for_person, percent) {
            (0, None) => ("", ShownProgress::Busy),
            (0, Some(percent)) => ("", ShownProgress::Percent(percent)),
            (_, percent) => (" · needs you", ShownProgress::NeedsSomeone(percent.unwrap_or(0))),
        };
        Self { title: format!("raymond {run}{share}{needs}"), progress }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::registry::{EndedTally, FanOutKey};
    use crate::plugin::fan_out::{ActivityCounts, FanOutProgress};

    #[test]
    fn status_says_how_far_a_run_is_and_whether_it_needs_somebody() {
        let status = |live: ActivityCounts, ended: usize| {
            let ended = EndedTally { ended, ..EndedTally::default() };
            let mut progress = FanOutProgress::default();
            (progress.live, progress.ended) = (live, ended);
            let agents = FanOuts([(FanOutKey { depth: 0, began: None }, progress)].into());
            let WindowStatus { title, progress } = WindowStatus::of("r", &agents);
            (title, progress)
        };
        let running = ActivityCounts { running: 1, ..ActivityCounts::default() };
        assert_eq!(status(running, 0), ("raymond r".to_owned(), ShownProgress::Busy));
        let share = ("raymond r · 75%".to_owned(), ShownProgress::Percent(75));
        assert_eq!(status(running, 3), share);
        let asking = ActivityCounts { for_person: 1, ..running };
        let needs = ("raymond r · 50% · needs you".to_owned(), ShownProgress::NeedsSomeone(50));
        assert_eq!(status(asking, 2), needs);
    }
}
