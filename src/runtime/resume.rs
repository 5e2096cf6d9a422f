//! Resumes an existing run, once its workflow's files fit the state of its agents.
//!
//! A graph that was edited since an agent entered it is another graph. The run resumes with it only on request, and
//! only if the agent's node is still there.

use std::sync::Arc;

use super::answerer::check_answerer;
use super::check::refuse_errors_of_states;
use super::error::Error;
use super::graphs::GraphSetup;
use super::root_capture::capture_root;
use super::supervise::{live_scope, pinned_scope};
use super::trust::RunStarter;
use super::{recording, seals};
use crate::actor::supervisor::SupervisorStart;
use crate::domain::agent::Agent;
use crate::domain::apply::apply;
use crate::domain::decide::retry_agents;
use crate::domain::event::Record;
use crate::domain::graph_execution::GraphState;
use crate::domain::id::SessionId;
use crate::domain::question::Question;
use crate::domain::retry::RetrySelection;
use crate::domain::run::Run;
use crate::domain::settings::{AnswererKind, Settings};
use crate::domain::time::Timestamp;
use crate::language::diagnostic::Diagnostic;
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::read::read;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::hint::closest;
use crate::language::prompt::step;
use crate::language::source::WorkflowSource;
use crate::runtime::create::PreparedRun;
use crate::runtime::observing::agent_entries::apply_inbox;
use crate::store::layout::RunsRoot;
use crate::store::pinned;
use crate::store::run_store::{LockedRun, RecoveredRun};
use crate::store::user_state::{UserState, sealed_terms};
use crate::store::workflow::WorkflowDir;

/// Prepares a run to resume under these settings.
///
/// # Errors
/// [`Error`] if a graph it is in has been edited, or a given answer is not valid for a waiting question.
pub fn resume(
    mut store: LockedRun,
    recovered: RecoveredRun,
    mut settings: Settings,
    mut graphs: GraphSetup,
    root: &RunsRoot,
    starter: &RunStarter,
) -> Result<PreparedRun, Error> {
    let RecoveredRun { run, untouched, retry, mut warnings } = recovered;
    let after_retry = retry.as_ref().and_then(|selection| preview(&run, selection));
    let resumed = after_retry.as_ref().unwrap_or(&run);
    let mut notes = Vec::new();
    let pins = pinned::load(&store.dir().pins())?;
    let found = sealed_terms(&run.settings, pins.as_ref());
    let confirmed = seals::check(starter, root, &run, store.first_session(), &found)?;
    let mut seen = run.clone();
    apply_inbox(&mut seen, store.dir(), &starter.state.key()?)?;
    warnings.extend(check_answers(&seen, &settings)?);
    if settings.cassette.is_some() {
        recording::of_run(&settings, &store.dir().cassette())?;
    }
    let mut terms = vec![found];
    let pins = match pins {
        Some(pins) if !graphs.migrate => {
            // Pinned files were replaced on purpose, so an agent continues with them even if it began with an older
            // text.
            graphs.migrate = true;
            if store.repair_copy(&pins)? {
                warnings.push(format!(
                    "{}: the copy of the workflow was damaged; raymond restored it",
                    store.dir().workflow().display()
                ));
            }
            let scope = pinned_scope(&run, &settings, store.dir(), pins.clone(), None)?;
            scope.check_copy().map_err(step::Error::from)?;
            check_graphs(resumed, &scope, &graphs)?;
            pins
        }
        pins => {
            let live = live_scope(&run, &settings)?;
            // What is pinned is what is checked here.
            let current = Arc::new(capture_root(live.root(), root.path())?);
            let live = live.captured(&current);
            check_graphs(resumed, &live, &graphs)?;
            check_prompts(resumed, &live)?;
            let edited = resumed.agents.values().filter(|agent| agent.edited_prompt.is_some());
            warnings.extend(edited.map(|agent| {
                let id = &agent.id;
                format!("{id}: its prompt stays as a person edited it, even if the files differ now; `raymond edit` changes it")
            }));
            if retry.is_some() {
                refuse_errors_after_retry(resumed, &live, &settings, graphs.vocabulary())?;
            }
            if settings.answerer == AnswererKind::Scripted {
                check_answerer(&settings, &live, root, &run.workflow_id, &starter.state)?;
            }
            let (copy, pins) = (store.dir().workflow(), pins.as_ref());
            let migration =
                seals::migrate(current, &copy, &run, &mut settings, &graphs, pins, starter)?;
            notes = migration.notes;
            terms.push(sealed_terms(&run.settings, Some(&migration.pins)));
            seals::save(starter, root, &run, terms.clone(), &confirmed)?;
            store.repin(&migration.capture)?;
            migration.pins
        }
    };
    terms.push(sealed_terms(&settings, Some(&pins)));
    seals::save(starter, root, &run, terms, &confirmed)?;
    store.set_key(starter.state.key()?);
    let start = SupervisorStart::on_resume(untouched, settings, retry, &run);
    Ok(PreparedRun {
        store,
        run,
        start,
        warnings,
        graphs,
        user_state: starter.state.clone(),
        pins,
        capture: None,
        notes,
        held: None,
        believes_unproven_steps: confirmed.is_new,
    })
}

/// Returns the run as it will be once the chosen agents are retried.
fn preview(run: &Run, selection: &RetrySelection) -> Option<Run> {
    let session = || SessionId::new("");
    let retried = retry_agents(run, selection, session).ok()?;
    let mut after = run.clone();
    let record = Record::next(run, Timestamp::default(), retried);
    apply(&mut after, &record).ok().map(|_| after)
}

/// Checks that the newly given answers are valid for the questions already asked. Returns a warning for each answer to
/// another question.
fn check_answers(run: &Run, settings: &Settings) -> Result<Vec<String>, Error> {
    let asked = run.agents.values().filter_map(Agent::question);
    let asked: Vec<&Question> = asked.map(|asked| &asked.question).collect();
    let given = |node: &str| {
        let before = run.settings.answers.get(node).map_or(0, Vec::len);
        settings.answers.get(node).into_iter().flatten().skip(before)
    };
    let open = || asked.iter().map(|question| &*question.node);
    let others = settings.answers.keys().filter(|node| open().all(|open| open != *node));
    let warning = |node: &String, text: &String| {
        let similar = closest(node, open()).map(|open| format!("; did you mean {open}?"));
        format!(
            "--answer {node}={text}: no question of this name is open{}; raymond keeps the answer for a later one",
            similar.unwrap_or_default()
        )
    };
    let kept = others.flat_map(|node| given(node).map(move |text| warning(node, text))).collect();
    for question in &asked {
        for text in given(&question.node) {
            question.read(text).map_err(|invalid| Error::Answer {
                node: question.node.clone(),
                text: text.clone(),
                why: invalid.to_string(),
            })?;
        }
    }
    Ok(kept)
}

/// Checks that the current prompt states of all agents can be read, because the files are kept from then on.
fn check_prompts(run: &Run, scope: &WorkflowDir) -> Result<(), Error> {
    for agent in run.agents.values().filter(|agent| agent.current_state.is_prompt()) {
        let source = scope.at(agent.folder().as_ref()).map_err(step::Error::from)?;
        step::join(&agent.current_state, &source)?;
    }
    Ok(())
}

/// Refuses files with an error that the retried agents reach.
fn refuse_errors_after_retry(
    run: &Run,
    live: &WorkflowDir,
    settings: &Settings,
    vocabulary: &GraphVocabulary,
) -> Result<(), Error> {
    let states = run.agents.values().map(|agent| (agent.folder(), agent.current_state.clone()));
    refuse_errors_of_states(live, states, settings, vocabulary)
}

/// Checks that agents can be retried with the workflow's files as they are now.
///
/// # Errors
/// [`Error`] if an agent cannot, or reaches an error.
pub fn check_retry(
    root: &RunsRoot,
    run: &Run,
    selection: &RetrySelection,
    graphs: &GraphSetup,
    state: &UserState,
) -> Result<(), Error> {
    let Some(after) = preview(run, selection) else { return Ok(()) };
    let live = live_scope(&after, &run.settings)?;
    check_graphs(&after, &live, graphs)?;
    check_prompts(&after, &live)?;
    if run.settings.answerer == AnswererKind::Scripted {
        check_answerer(&run.settings, &live, root, &run.workflow_id, state)?;
    }
    refuse_errors_after_retry(&after, &live, &run.settings, graphs.vocabulary())
}

/// Checks that all agents can resume in their graphs.
fn check_graphs(run: &Run, scope: &WorkflowDir, graphs: &GraphSetup) -> Result<(), Error> {
    let mut inside = run.agents.values().filter_map(|agent| Some((agent, agent.graph()?)));
    inside.try_for_each(|(agent, memory)| check_graph(run, agent, &memory.state, scope, graphs))
}

/// Checks that an agent can resume in its graph.
fn check_graph(
    run: &Run,
    agent: &Agent,
    state: &GraphState,
    scope: &WorkflowDir,
    graphs: &GraphSetup,
) -> Result<(), Error> {
    let file = &agent.current_state;
    let source = &scope.at(agent.folder().as_ref()).map_err(step::Error::from)?;
    let text = source.read(file).map_err(step::Error::from)?;
    let path = source.path(file);
    let reading = read(&path, None, &text, graphs.vocabulary(), source, GraphProfile::Lenient);
    let Some(graph) = reading.graph else {
        let diagnostics = reading.diagnostics.into_iter().filter(Diagnostic::is_error).collect();
        return Err(Error::Graph { diagnostics, text: String::new() });
    };
    if *graph.hash == *state.program {
        return Ok(());
    }
    let (agent, node, run) = (agent.id.clone(), state.current_node.to_string(), &run.workflow_id);
    if !graphs.migrate {
        return Err(Error::Edited { path, agent, node, run: run.clone() });
    }
    let is_there = graph.nodes.contains_key(&*state.current_node)
        || graph.endings.contains_key(&*state.current_node);
    if is_there { Ok(()) } else { Err(Error::NodeGone { path, agent, node, run: run.clone() }) }
}
