//! The first difference of two runs with its texts.

use std::collections::HashMap;

use serde::Serialize;

use crate::cli::exit::Error;
use crate::domain::cassette::reply_text;
use crate::domain::run_diff::{MomentDifference, RunPair};
use crate::domain::run_trace::{TraceAspect, TracedMoment, TracedText};
use crate::language::diagnostic::line_difference;
use crate::runtime::comparison::{ComparedRun, RunComparison};
use crate::store::layout::RunsRoot;

/// The first difference of two runs.
#[derive(Serialize)]
pub(super) struct FirstDifference<'found> {
    #[serde(flatten)]
    pub(super) moment: &'found MomentDifference,
    #[serde(rename = "differs")]
    pub(super) parts: Vec<DifferentPart>,
}

/// A part of a moment that differs.
#[derive(Serialize)]
pub(super) struct DifferentPart {
    #[serde(rename = "what")]
    pub(super) aspect: TraceAspect,
    #[serde(flatten)]
    pub(super) texts: RunPair<Option<String>>,
    /// The lines that differ, if both texts are known and not too long.
    pub(super) lines: Option<String>,
}

impl<'found> FirstDifference<'found> {
    /// Returns the first difference; `None` if there is none.
    pub(super) fn of(found: &'found RunComparison, root: &RunsRoot) -> Result<Option<Self>, Error> {
        let Some(moment) = &found.diff.first else { return Ok(None) };
        let texts = |run: &ComparedRun, own: &Option<_>| {
            let turn = own.as_ref().map(|own: &TracedMoment| &own.turn);
            turn.map(|turn| run.texts(root, turn)).transpose()
        };
        let texts = RunPair {
            a: texts(&found.runs.a, &moment.moments.a)?.unwrap_or_default(),
            b: texts(&found.runs.b, &moment.moments.b)?.unwrap_or_default(),
        };
        let part = |(aspect, pair): &(TraceAspect, RunPair<Option<TracedText>>)| {
            let texts = match aspect {
                TraceAspect::Prompt => texts.as_ref().map(|turn| turn.prompt.clone()),
                TraceAspect::Reply => texts
                    .as_ref()
                    .map(|turn| reply_text(turn.answer.as_deref(), turn.structured.as_deref())),
                _ => pair.as_ref().map(|text| text.as_ref().map(|text| text.text.clone())),
            };
            let lines = texts.a.as_ref().zip(texts.b.as_ref());
            let lines =
                lines.and_then(|(a, b)| line_difference(a, &with_ids_of(&found.runs, a, b)));
            DifferentPart { aspect: *aspect, texts, lines }
        };
        Ok(Some(Self { moment, parts: moment.aspects.iter().map(part).collect() }))
    }
}

/// Returns the text of the second run with those lines of the first that differ from its own only in the ids of the runs.
fn with_ids_of(runs: &RunPair<ComparedRun>, a: &str, b: &str) -> String {
    let lines = a.split_inclusive('\n').map(|line| (runs.a.without_ids(line), line));
    let lines: HashMap<String, &str> = lines.collect();
    let same = |line| lines.get(&runs.b.without_ids(line)).copied().unwrap_or(line);
    b.split_inclusive('\n').map(same).collect()
}
