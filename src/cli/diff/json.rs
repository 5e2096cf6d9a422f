//! The difference of two runs as JSON.

use serde_json::{Value, json};

use super::first::FirstDifference;
use crate::cli::status_word;
use crate::domain::id::AgentId;
use crate::domain::money::Usd;
use crate::domain::run_diff::{FileDifference, RunPair, StepDifference, StepWay};
use crate::domain::run_trace::{TracedContent, TracedEnding, TracedFile, TracedMoment, TracedText};
use crate::language::diagnostic::line_difference;
use crate::runtime::comparison::{ComparedRun, RunComparison, WorkflowFileDifference};

/// Returns the difference as JSON.
pub(super) fn value(
    found: &RunComparison,
    agent: Option<&AgentId>,
    first: Option<&FirstDifference<'_>>,
) -> Value {
    let diff = &found.diff;
    let result = |(agent, pair): &(AgentId, RunPair<Option<TracedEnding>>)| json!({ "agent": agent, "a": of_ending(pair.a.as_ref()), "b": of_ending(pair.b.as_ref()) });
    let states =
        diff.state_costs.iter().map(|(state, pair)| with("state", json!(state), cost(*pair)));
    let commands = found.runs.as_ref().map(|run| run.trace.files.commands);
    let input = |(name, pair): (&String, &RunPair<Option<TracedText>>)| {
        let texts = pair.as_ref().map(|text| text.as_ref().map(|text| &text.text));
        json!({ "name": name, "a": texts.a, "b": texts.b })
    };
    json!({
        "runs": { "a": run(&found.runs.a), "b": run(&found.runs.b) },
        "agent": agent,
        "equal": diff.is_equal(),
        "shared_records": diff.shared,
        "first_difference": first.map(of_first),
        "steps": diff.steps.iter().map(step).collect::<Vec<_>>(),
        "results": diff.results.iter().map(result).collect::<Vec<_>>(),
        "cost": cost(diff.cost),
        "states": states.collect::<Vec<_>>(),
        "files": diff.files.iter().map(file).collect::<Vec<_>>(),
        "commands": { "a": commands.a, "b": commands.b },
        "inputs": diff.inputs.iter().map(input).collect::<Vec<_>>(),
        "workflow_files": found.workflow.iter().map(workflow_file).collect::<Vec<_>>(),
    })
}

fn with(key: &str, named: Value, mut value: Value) -> Value {
    value[key] = named;
    value
}

fn run(run: &ComparedRun) -> Value {
    json!({
        "run": run.view.run.workflow_id,
        "status": status_word::word(&run.view),
        "records": run.trace.lineage.last(),
    })
}

fn of_first(first: &FirstDifference<'_>) -> Value {
    let place = |moment: &Option<TracedMoment>| {
        let place =
            |moment: &TracedMoment| json!({ "record": moment.seq, "turn": moment.turn.turn });
        moment.as_ref().map(place)
    };
    let part = |part: &super::first::DifferentPart| json!({ "what": part.aspect, "a": part.texts.a, "b": part.texts.b, "lines": part.lines });
    json!({
        "agent": first.moment.agent,
        "step": first.moment.step,
        "a": place(&first.moment.moments.a),
        "b": place(&first.moment.moments.b),
        "differs": first.parts.iter().map(part).collect::<Vec<_>>(),
    })
}

fn step(step: &StepDifference) -> Value {
    let way = |way: &Option<StepWay>| {
        let way = way.as_ref();
        way.map(|way| json!({ "record": way.seq, "state": way.state.text, "outcomes": texts(&way.outcomes) }))
    };
    let ways = step.ways.as_ref().map(way);
    json!({ "agent": step.agent, "step": step.step, "a": ways.a, "b": ways.b })
}

fn texts(texts: &[TracedText]) -> Vec<&str> {
    texts.iter().map(|text| text.text.as_str()).collect()
}

fn of_ending(ending: Option<&TracedEnding>) -> Value {
    match ending {
        None => Value::Null,
        Some(TracedEnding::Live) => json!({ "status": "live" }),
        Some(TracedEnding::Unneeded) => json!({ "status": "unneeded" }),
        Some(TracedEnding::Result(result)) => {
            json!({ "status": "finished", "result": result.text })
        }
        Some(TracedEnding::Failed(error)) => json!({ "status": "failed", "error": error.text }),
    }
}

fn cost(pair: RunPair<Usd>) -> Value {
    json!({
        "a": pair.a,
        "b": pair.b,
        "difference": pair.b.dollars() - pair.a.dollars(),
    })
}

fn file(file: &FileDifference) -> Value {
    let side = |side: &Option<TracedFile>| {
        let side = side.as_ref();
        side.map(|side| {
            let by: Vec<String> =
                side.by.iter().map(|turn| format!("{}#{}", turn.agent, turn.step)).collect();
            match &side.content {
                TracedContent::Known(text) => json!({ "by": by, "content": text }),
                TracedContent::Edited(edits) => json!({ "by": by, "edits": edits }),
            }
        })
    };
    let sides = file.files.as_ref().map(side);
    json!({
        "path": file.path,
        "worktree_of": file.tree,
        "a": sides.a,
        "b": sides.b,
        "lines": file_lines(file),
    })
}

/// Returns the changed lines of a file, if both texts are known.
pub(super) fn file_lines(file: &FileDifference) -> Option<String> {
    let known = |side: &Option<TracedFile>| match side.as_ref().map(|side| side.content.clone()) {
        Some(TracedContent::Known(text)) => Some(text),
        Some(TracedContent::Edited(_)) | None => None,
    };
    line_difference(&known(&file.files.a)?, &known(&file.files.b)?)
}

fn workflow_file(file: &WorkflowFileDifference) -> Value {
    json!({ "path": file.path, "change": file.how.word(), "lines": file.lines })
}
