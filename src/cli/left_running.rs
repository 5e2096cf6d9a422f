//! The processes that run on after a raymond was killed, and what a resume does with each.

use std::path::Path;

use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::domain::supervision::RestartPolicy;
use crate::process::child::orphans;
use crate::process::command::EnvironmentMarker;
use crate::store::layout::RunsRoot;
use crate::store::view::RunView;

/// Returns a note about processes that run on after a raymond was killed; empty if there are none.
pub(super) fn left_running(root: &RunsRoot, view: &RunView) -> String {
    if view.held {
        return String::new();
    }
    let id = &view.run.workflow_id;
    let marker = EnvironmentMarker { run: id.clone(), dir: root.path().to_owned() };
    let left: Vec<LeftProcess> = orphans::find(&marker)
        .iter()
        .filter(|process| process.leads)
        .map(|process| LeftProcess::of(&process.process, &view.run, &root.run(id).steps()))
        .collect();
    LeftProcess::KINDS.iter().filter_map(|kind| kind.sentence(&left, id)).collect()
}

/// A process that runs on after a raymond was killed, by what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeftProcess {
    /// A turn of Claude Code.
    Turn,
    /// A script that the restart policy of its agent has run again.
    RepeatedScript,
    /// A script whose agent is not restarted.
    LastScript,
    /// Another operation of a graph or a program.
    Operation,
}

impl LeftProcess {
    const KINDS: [Self; 4] = [Self::Turn, Self::RepeatedScript, Self::LastScript, Self::Operation];

    /// Returns the kind of a process, given its name and the directory of the streams of turns.
    fn of(process: &str, run: &Run, steps: &Path) -> Self {
        let agent = run.agents.values().find(|agent| agent.turn_id().stem() == process);
        match agent.filter(|agent| agent.runs_script()) {
            Some(agent) if run.supervision_of(agent).restart == RestartPolicy::Temporary => {
                Self::LastScript
            }
            Some(_) => Self::RepeatedScript,
            None if steps.join(format!("{process}.jsonl")).exists() => Self::Turn,
            None => Self::Operation,
        }
    }

    /// Returns what becomes of the processes of this kind, if there are any.
    fn sentence(self, left: &[Self], id: &RunId) -> Option<String> {
        let count = left.iter().filter(|one| **one == self).count();
        let resume = format!("`raymond resume {id}`");
        let text = match self {
            Self::Turn => format!(
                "{count} of its processes still run; {resume} takes them over, and ends them if it is interrupted"
            ),
            Self::RepeatedScript => format!(
                "{count} of its scripts still run; {resume} ends them and runs them again, according to the restart policy"
            ),
            Self::LastScript => format!(
                "{count} of its scripts still run; {resume} ends them, and their agents fail, according to the restart policy"
            ),
            Self::Operation => format!(
                "{count} of its operations still run; {resume} repeats those that are safe to repeat, and ends the others, whose effect is then uncertain"
            ),
        };
        (count > 0).then_some(text + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_process_has_a_sentence_about_its_future() {
        let id = RunId::parse("t").expect("an id");
        let left = [LeftProcess::Turn, LeftProcess::RepeatedScript, LeftProcess::Turn];
        let said: Vec<String> =
            LeftProcess::KINDS.iter().filter_map(|kind| kind.sentence(&left, &id)).collect();
        assert_eq!(said.len(), 2);
        assert!(said[0].starts_with("2 of its processes still run; `raymond resume t` takes"));
        assert!(
            said[1].starts_with("1 of its scripts still run; `raymond resume t` ends them and")
        );
    }
}
