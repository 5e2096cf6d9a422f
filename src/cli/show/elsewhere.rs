//! The texts of turns that ran at other hosts, for `raymond show`.
//!
//! The sessions of an agent's turns that can be resumed.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::args::readers::ShowArgs;
use crate::cli::engine;
use crate::cli::exit::Error;
use crate::domain::history::{HistoryStep, HistoryTurn};
use crate::domain::id::{RunId, SessionId};
use crate::domain::run::Run;
use crate::domain::settings::AnswererKind;
use crate::domain::turn::{ScriptTexts, TurnId, TurnTexts};
use crate::process::turn_transcript::{PromptAndReply, TurnTranscript};
use crate::runtime;
use crate::runtime::branch_draft::missing;
use crate::runtime::sharing::{TurnPlace, transcripts};
use crate::store::layout::RunDir;
use crate::world::perform::{ScriptOutput, script_output};

/// The texts of turns that ran at other hosts, or why their hosts did not give them.
#[derive(Debug, Default)]
pub(super) struct TextsElsewhere(BTreeMap<TurnId, Result<TurnTexts, String>>);

impl TextsElsewhere {
    /// Asks the hosts for the texts of those turns that this machine has no files of.
    ///
    /// # Errors
    /// [`Error`] if the engine cannot be asked.
    pub(super) fn fetch(
        args: &ShowArgs,
        run: &RunId,
        dir: &RunDir,
        steps: &[HistoryStep],
    ) -> Result<Self, Error> {
        let Some(engine) = engine::connected(&args.dir)? else { return Ok(Self::default()) };
        let files = dir.steps();
        let is_here = |turn: &TurnId| {
            TurnTranscript::find(&files, &turn.stem()).is_some()
                || matches!(script_output(&files, &turn.stem()), Ok(Some(_)))
        };
        let turns = steps.iter().flat_map(|step| &step.turns);
        let places = turns
            .filter_map(|turn| Some(TurnPlace { turn: turn.id.clone(), host: turn.host.clone()? }));
        let mut places: Vec<TurnPlace> = places.filter(|place| !is_here(&place.turn)).collect();
        places.dedup_by(|one, other| one.turn == other.turn);
        let found = transcripts(&*engine, run, places).map_err(runtime::Error::from)?;
        Ok(Self(found))
    }

    /// Returns the prompt and the reply of a turn, if its host gave them.
    pub(super) fn texts(&self, turn: &HistoryTurn) -> Option<PromptAndReply> {
        let TurnTexts { prompt, answer, .. } = self.given(turn)?;
        let (prompt, answer) = (prompt.clone(), answer.clone());
        let texts = PromptAndReply { prompt, answer, ..PromptAndReply::default() };
        (texts.prompt.is_some() || texts.answer.is_some()).then_some(texts)
    }

    /// Returns the output of the script of a turn, if its host gave it.
    pub(super) fn script(&self, turn: &HistoryTurn) -> Option<Result<ScriptOutput, String>> {
        let output = self.given(turn)?.script.clone()?;
        Some(output.map(|ScriptTexts { exit_code, stdout, stderr }| ScriptOutput {
            exit_code,
            stdout,
            stderr,
        }))
    }

    /// Returns why the texts of a turn are not shown, or not whole.
    pub(super) fn missing(&self, turn: &HistoryTurn) -> Option<String> {
        let was_answered = || {
            let cost = turn.end.as_ref().and_then(|end| end.event.cost());
            cost.is_some_and(|cost| cost.duration_ms.is_some())
        };
        match self.0.get(&turn.id)? {
            Ok(texts) if texts.is_cut => {
                Some("a text is longer than what its host gives, its first MiB".to_owned())
            }
            Ok(texts) if texts.is_empty() && was_answered() => {
                let host = turn.host.as_ref()?;
                Some(format!("the host {host} no longer has its files"))
            }
            Ok(_) => None,
            Err(why) => Some(why.clone()),
        }
    }

    fn given(&self, turn: &HistoryTurn) -> Option<&TurnTexts> {
        self.0.get(&turn.id)?.as_ref().ok()
    }
}

/// The sessions of turns, and those among them that Claude Code does not have any more.
#[derive(Debug, Default)]
pub(super) struct KeptSessions {
    missing: BTreeSet<SessionId>,
    /// True if the turns have had no session of Claude Code at all.
    has_none: bool,
}

impl KeptSessions {
    /// Looks the sessions up. One that cannot be looked up counts as kept.
    pub(super) fn of(run: &Run, steps: &[HistoryStep]) -> Self {
        let turns = steps.iter().flat_map(|step| &step.turns);
        let sessions = turns.map(|turn| turn.session.clone());
        let missing = missing(&run.settings, sessions).ok().flatten();
        Self {
            missing: missing.map(|missing| missing.ids).unwrap_or_default(),
            has_none: run.settings.answerer != AnswererKind::Claude,
        }
    }

    /// Returns whether the session of a turn can be resumed. A host has those of its turns itself.
    pub(super) fn has(&self, turn: &HistoryTurn) -> bool {
        !self.has_none && (turn.host.is_some() || !self.missing.contains(&turn.session))
    }
}
