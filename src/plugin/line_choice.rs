//! The records that are worth a line of the console, and the lines on the progress of fan-outs. Pure.
//!
//! Each record has a line, above the live view of a terminal, too, except for those of a fan-out of many: raymond reports
//! its steps as progress, at each tenth and now and then between, and only the first few failures and reminders alike.

use std::collections::{BTreeMap, HashMap};
use std::mem::{Discriminant, discriminant};

use super::fan_out::{FAMILY_FOLD_SIZE, FanOuts};
use super::styled::TextTone;
use crate::actor::registry::FanOutKey;
use crate::domain::event::{Event, TurnFailed};
use crate::domain::time::Timestamp;
use crate::domain::transition::TagName;
use crate::domain::turn::FailureCause;

/// The longest time in milliseconds between two lines on the progress of a fan-out that makes any.
const PROGRESS_INTERVAL_MS: u64 = 30_000;

/// The number of the first of many records alike that has no line.
const FIRST_HIDDEN: usize = FAMILY_FOLD_SIZE + 1;

/// The amount that is told about a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// Only what needs attention.
    Quiet,
    /// The progress.
    #[default]
    Normal,
    /// Everything.
    Verbose,
}

/// The verdict about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineVerdict {
    /// It has a line.
    Shown,
    /// It has none, as the first of many that are alike.
    FirstHidden,
    /// It has none.
    Hidden,
}

/// The choice of the records that have a line.
#[derive(Debug)]
pub struct LineChoice {
    verbosity: Verbosity,
    alike: HashMap<(FanOutKey, Discriminant<Event>), usize>,
    /// True from a line about an absent network until a turn is answered.
    is_offline: bool,
}

impl LineChoice {
    /// Makes the choice for an amount of lines.
    pub fn new(verbosity: Verbosity) -> Self {
        Self { verbosity, alike: HashMap::new(), is_offline: false }
    }

    /// Returns whether a record is worth a line; `many` is the fan-out of its agent, if that has many.
    pub fn judge(&mut self, event: &Event, many: Option<&FanOutKey>) -> LineVerdict {
        let repeats = self.repeats_absence(event) && self.verbosity != Verbosity::Verbose;
        let is_shown = match self.verbosity {
            Verbosity::Quiet => is_urgent(event),
            Verbosity::Normal => is_shown(event, many.is_some()),
            Verbosity::Verbose => is_shown(event, false),
        };
        match many.filter(|_| self.verbosity != Verbosity::Verbose) {
            _ if !is_shown || repeats => LineVerdict::Hidden,
            None => LineVerdict::Shown,
            Some(many) => {
                let count = self.alike.entry((many.clone(), discriminant(event))).or_default();
                *count += 1;
                match *count {
                    ..=FAMILY_FOLD_SIZE => LineVerdict::Shown,
                    FIRST_HIDDEN => LineVerdict::FirstHidden,
                    _ => LineVerdict::Hidden,
                }
            }
        }
    }

    /// Returns whether a record says once more that there is no network, and notes what it says.
    fn repeats_absence(&mut self, event: &Event) -> bool {
        let was_offline = self.is_offline;
        if let Event::TurnFailed(TurnFailed { cause: FailureCause::Network, .. }) = event {
            self.is_offline = true;
            return was_offline;
        }
        self.is_offline = was_offline
            && !matches!(
                event,
                Event::StepFinished(_) | Event::TurnRejected(_) | Event::TransitionProposed(_)
            );
        false
    }
}

/// Returns whether a record needs attention.
fn is_urgent(event: &Event) -> bool {
    matches!(event, Event::AgentFailed(_) | Event::AgentParked(_) | Event::LimitReached { .. })
}

/// Returns whether a record is worth a line. The progress of a fan-out shows its steps; a pause and its reason are printed
/// at the end of the run.
fn is_shown(event: &Event, are_steps_shown: bool) -> bool {
    match event {
        Event::RunStarted(_)
        | Event::RunResumed { .. }
        | Event::AgentsRetried { .. }
        | Event::RunBranched(_)
        | Event::TurnRejected(_)
        | Event::AgentFailed(_)
        | Event::AgentParked(_)
        | Event::TurnHeld(_)
        | Event::QuestionAnswered(_)
        | Event::QuestionTimedOut(_)
        | Event::ApprovalAnswered(_)
        | Event::LimitReached { .. } => true,
        Event::ApprovalAsked(event) => event.grant.is_none() || !are_steps_shown,
        Event::ProgramLogged(event) => event.warning || !are_steps_shown,
        Event::TurnFailed(event) => !matches!(
            event.cause,
            FailureCause::Authentication
                | FailureCause::Account
                | FailureCause::Unavailable
                | FailureCause::Storage
                | FailureCause::UsageLimit
        ),
        Event::StepFinished(step) => !are_steps_shown || step.overruled.is_some(),
        Event::AgentsPlaced { lost } => !lost.is_empty(),
        Event::ProgramDefined(_) | Event::RunPaused { .. } | Event::CostCounted { .. } => false,
        _ => !are_steps_shown,
    }
}

/// Returns the tone of the sentence about an event.
pub fn tone(event: &Event) -> TextTone {
    match event {
        Event::AgentFailed(_) => TextTone::Bad,
        Event::AgentParked(_)
        | Event::TurnFailed(_)
        | Event::TurnRejected(_)
        | Event::TurnHeld(_)
        | Event::QuestionTimedOut(_)
        | Event::ApprovalAsked(_)
        | Event::RunPaused { .. }
        | Event::LimitReached { .. } => TextTone::Warning,
        Event::ProgramLogged(event) if event.warning => TextTone::Warning,
        Event::StepFinished(step) if step.overruled.is_some() => TextTone::Warning,
        Event::StepFinished(step) if step.transition.tag() == TagName::Result => TextTone::Good,
        Event::RunStarted(_)
        | Event::RunResumed { .. }
        | Event::RunBranched(_)
        | Event::AgentsRetried { .. }
        | Event::AgentsPlaced { .. } => TextTone::Strong,
        Event::CommandReceived { .. }
        | Event::MessagesTaken { .. }
        | Event::CostCounted { .. }
        | Event::FactsSeen { .. } => TextTone::Faint,
        _ => TextTone::Plain,
    }
}

/// The progress of the fan-outs that has been told.
#[derive(Debug, Default)]
pub struct ToldProgress(BTreeMap<FanOutKey, ToldFanOut>);

#[derive(Debug, Clone, Copy)]
struct ToldFanOut {
    ended: usize,
    tenth: usize,
    at: Timestamp,
}

impl ToldProgress {
    /// Returns the large fan-outs whose progress is to be told now, and remembers that it is told.
    pub fn due(&mut self, fan_outs: &FanOuts, now: Timestamp) -> Vec<FanOutKey> {
        let mut due = Vec::new();
        for (key, progress) in fan_outs.large() {
            let present =
                ToldFanOut { ended: progress.ended.ended, tenth: progress.percent() / 10, at: now };
            let is_due = self.0.get(key).is_none_or(|told| {
                present.tenth > told.tenth
                    || (present.ended > told.ended && now.since(told.at) >= PROGRESS_INTERVAL_MS)
            });
            if is_due {
                self.0.insert(key.clone(), present);
                due.push(key.clone());
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::tests::scene::{Scene, result};
    use crate::plugin::fan_out::tests::{crowd, key};

    /// Returns a step, and the end of an agent.
    fn events() -> [Event; 2] {
        let scene = Scene::begin();
        let failed = Event::AgentFailed(scene.end_badly("main"));
        [Event::StepFinished(scene.step("main", result("done"))), failed]
    }

    #[test]
    fn steps_have_lines_unless_a_fan_out_shows_them() {
        use LineVerdict::{Hidden, Shown};
        let [step, failed] = events();
        let many = key("WORK.md", 1);
        let table = [
            (Verbosity::Normal, None, Shown, Shown),
            (Verbosity::Normal, Some(&many), Hidden, Shown),
            (Verbosity::Verbose, Some(&many), Shown, Shown),
            (Verbosity::Quiet, None, Hidden, Shown),
        ];
        for (verbosity, many, of_step, of_failure) in table {
            let mut choice = LineChoice::new(verbosity);
            let judged = (choice.judge(&step, many), choice.judge(&failed, many));
            assert_eq!(judged, (of_step, of_failure), "{verbosity:?} {many:?}");
        }
    }

    #[test]
    fn only_the_first_of_many_failures_have_lines() {
        let [_, failed] = events();
        let judged = |verbosity| {
            let mut choice = LineChoice::new(verbosity);
            let judged: Vec<LineVerdict> =
                (0..20).map(|_| choice.judge(&failed, Some(&key("WORK.md", 1)))).collect();
            let other = choice.judge(&failed, Some(&key("OTHER.md", 1)));
            assert_eq!(other, LineVerdict::Shown, "another fan-out is counted by itself");
            judged
        };
        let normal = judged(Verbosity::Normal);
        assert_eq!(
            normal[10..14],
            [LineVerdict::Shown, LineVerdict::Shown, LineVerdict::FirstHidden, LineVerdict::Hidden]
        );
        assert_eq!(judged(Verbosity::Verbose), [LineVerdict::Shown; 20]);
    }

    #[test]
    fn progress_is_told_at_each_tenth_and_after_half_a_minute() {
        let mut told = ToldProgress::default();
        let mut is_due = |ended: usize, seconds: u64| {
            let (views, tallies) = crowd(4, 196 - u32::try_from(ended).expect("few"), ended);
            !told.due(&FanOuts::of(&views, tallies), Timestamp(seconds * 1000)).is_empty()
        };
        let table = [
            (0, 0, true),
            (10, 5, false),
            (19, 29, false),
            (20, 29, true),
            (20, 90, false),
            (21, 91, true),
            (21, 200, false),
            (70, 201, true),
        ];
        for (ended, seconds, due) in table {
            assert_eq!(is_due(ended, seconds), due, "{ended} at {seconds}s");
        }
        let (views, tallies) = crowd(4, 4, 2);
        assert!(
            ToldProgress::default().due(&FanOuts::of(&views, tallies), Timestamp(0)).is_empty()
        );
    }
}
