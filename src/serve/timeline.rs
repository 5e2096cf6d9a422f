//! The turns of a run over time: when each could begin, when it began, and when it ended.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::event::Record;
use crate::domain::id::{AgentId, StateName};
use crate::domain::ledger::{ChargeKind, LedgerCharge, cost_of};
use crate::domain::money::Usd;
use crate::domain::time::Timestamp;
use crate::domain::turn::TurnId;
use crate::process::claude::{model_times, turn_transcript};
use crate::store;
use crate::store::journal::JournalReader;
use crate::store::layout::RunDir;
use crate::store::record;

/// The maximum number of turns that are sent. The last turns are sent.
const MAX_TURNS: usize = 3000;

/// A turn over time. It waits until it has begun, then its process starts, then the model and its tools work, in turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TurnBar {
    /// The agent whose turn it is.
    pub agent: AgentId,
    /// The number of the agent's step that it belongs to.
    pub step: u64,
    /// Its number in the step, from 0.
    pub turn: u32,
    /// The state whose prompt it answers, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateName>,
    /// The time from which it was due.
    pub due: Timestamp,
    /// The time at which it began; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begun: Option<Timestamp>,
    /// The time at which the model was asked; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Timestamp>,
    /// The time that the model took of the rest, in milliseconds; absent if that is not known. The tools took what remains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_ms: Option<u64>,
    /// The time at which it ended.
    pub ended: Timestamp,
    /// True if it failed or its reply was refused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// The cost.
    pub cost_usd: Usd,
}

/// The turns of a run over time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunTimeline {
    /// The beginning of the run
    began: Timestamp,
    /// The number of turns that are left out
    left_out: usize,
    /// The turns
    turns: VecDeque<TurnBar>,
}

/// The fold over the records.
#[derive(Debug, Default)]
struct TimelineFold {
    /// The time of the last record of each agent.
    last: HashMap<AgentId, Timestamp>,
    began: Timestamp,
    bars: VecDeque<TurnBar>,
    left_out: usize,
}

impl TimelineFold {
    fn see(&mut self, record: &Record) {
        if record.seq == 1 {
            self.began = record.at;
        }
        let charge = cost_of(&record.event).filter(|charge| charge.on != ChargeKind::Nothing);
        if let Some(charge) = charge {
            self.add(record, &charge);
        }
        if let Some(agent) = record.event.agent() {
            self.last.insert(agent.clone(), record.at);
        }
    }

    fn add(&mut self, record: &Record, charge: &LedgerCharge<'_>) {
        let TurnId { agent, step, turn } = charge.turn;
        // The first turn of a forked agent is due from the record that forked it.
        let own = self.last.get(agent).or_else(|| self.last.get(agent.parent()?));
        let (due, ended) = (own.copied().unwrap_or(self.began), record.at);
        let took = charge.cost.duration_ms;
        self.bars.push_back(TurnBar {
            agent: agent.clone(),
            step: *step,
            turn: *turn,
            state: charge.prompt.cloned(),
            due,
            begun: None,
            asked: took.map(|took| Timestamp(ended.0.saturating_sub(took)).max(due)),
            model_ms: None,
            ended,
            failed: match charge.on {
                ChargeKind::Answer | ChargeKind::Nothing | ChargeKind::Late => false,
                ChargeKind::Rejected | ChargeKind::Failed(_) => true,
            },
            cost_usd: charge.cost.amount,
        });
        if self.bars.len() > MAX_TURNS {
            self.bars.pop_front();
            self.left_out += 1;
        }
    }
}

/// Reads the turns of a run that have ended.
///
/// # Errors
/// [`store::Error`].
pub fn read(dir: &RunDir) -> Result<RunTimeline, store::Error> {
    let mut fold = TimelineFold::default();
    JournalReader::open(&dir.journal())?.read_all(|_, line| {
        fold.see(&record::decode(line)?);
        Ok(())
    })?;
    let steps = dir.steps();
    let turns: Vec<TurnId> = fold.bars.iter().map(turn_of).collect();
    for ((bar, turn), model) in
        fold.bars.iter_mut().zip(&turns).zip(model_times::read(&steps, &turns))
    {
        (bar.begun, bar.model_ms) = (begun(&steps, bar, turn), model);
    }
    Ok(RunTimeline { began: fold.began, left_out: fold.left_out, turns: fold.bars })
}

fn turn_of(bar: &TurnBar) -> TurnId {
    TurnId { agent: bar.agent.clone(), step: bar.step, turn: bar.turn }
}

/// Returns the time at which a turn began: its first file is written then.
fn begun(steps: &Path, bar: &TurnBar, turn: &TurnId) -> Option<Timestamp> {
    let file =
        |ending: &str| turn_transcript::changed(&steps.join(format!("{}.{ending}", turn.stem())));
    let begun = file("turn").or_else(|| file("started"))?;
    Some(begun).filter(|begun| (bar.due..=bar.ended).contains(begun))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::Event;
    use crate::domain::tests::scene::{Scene, result, tag};
    use crate::domain::transition::TagName;

    #[test]
    fn turns_of_a_forked_agent_are_due_from_the_fork_on() {
        let mut scene = Scene::begin();
        let mut fold = TimelineFold::default();
        let mut take = |agent: &str, transition| {
            let event = Event::StepFinished(scene.step(agent, transition));
            let at = Timestamp(scene.next() * 1000);
            fold.see(&Record::next(&scene.run, at, event.clone()));
            scene.happens(event);
        };
        take("main", tag(TagName::Fork, "NEXT.md", "WORK.md"));
        take("main.1", result("done"));
        let bars: Vec<_> = fold.bars.iter().map(|bar| (bar.agent.as_str(), bar.step)).collect();
        assert_eq!(bars, [("main", 1), ("main.1", 1)]);
        assert_eq!(fold.bars[1].due, fold.bars[0].ended);
    }
}
