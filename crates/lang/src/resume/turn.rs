//! A turn of Claude Code: prepared once it has a permit, and judged by the rules that it was prepared with.

use std::fmt::Write as _;
use std::sync::Arc;

use super::{ResumeEnvironment, ResumeOutcome};
use crate::prompt::judgement::{JudgedReply, ReplyRules};
use crate::prompt::step::{
    self, DocumentReader, JoinResults, OptionSite, PreparedPrompt, PromptContext, RESULTS_FILE,
    UnfilledPlaceholder,
};
use crate::source::WorkflowSource;
use raymond_model::agent::{Agent, PersonMessage};
use raymond_model::approval::GrantedRule;
use raymond_model::consult::SpendingTotals;
use raymond_model::decide::{TurnJudgement, prompt_place};
use raymond_model::graph_execution::WaitResult;
use raymond_model::id::{Folder, StateName};
use raymond_model::money::Usd;
use raymond_model::privilege::RunPermission;
use raymond_model::settings::ForkRules;
use raymond_model::turn::{FailureCause, TURN_VERSION, TurnFailure, TurnInput, TurnReply};
use raymond_model::turn_options::{OnDenied, PermissionMode, TurnOptions};
use raymond_model::widening::{OptionWidening, effective_permission};
use raymond_model::worktree_snapshot::WorkingDir;

/// The permit of a turn to run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnPermit {
    /// The turn was begun before the run was resumed: plug-ins are not asked again.
    pub started: bool,
    /// The spending so far, for the plug-ins that are asked.
    pub spent: SpendingTotals,
    /// The spending limit of the turn.
    pub spending_limit: Option<Usd>,
}

/// A turn that is ready to be started.
#[derive(Debug, Clone)]
pub struct PreparedTurn {
    pub permit: TurnPermit,
    pub input: TurnInput,
    /// The rules for its reply.
    pub rules: TurnRules,
    /// The results of a join, which are written to a file that the prompt may name.
    pub results: Option<JoinResults>,
    /// Placeholders that nothing fills.
    pub unfilled: Vec<UnfilledPlaceholder>,
}

/// The rules for the reply of a turn or of a script, and the place that it comes from.
#[derive(Debug, Clone)]
pub struct TurnRules {
    /// The rules by which the reply is judged.
    pub reply: ReplyRules,
    /// The rules for forking agents.
    pub forks: ForkRules,
    /// The consequence of a refused tool.
    pub on_denied: OnDenied,
    /// True if the prompt may be a command, which may have nothing to say.
    pub runs_command: bool,
    /// True if a graph has asked for the turn, and continues with its result.
    pub is_for_graph: bool,
    pub state: StateName,
    /// The folder of the state below the scope, if it is not the scope itself.
    pub folder: Option<Folder>,
    /// The working directory of the agent.
    pub working_dir: WorkingDir,
    /// The commit its worktree begins at, where that is known.
    pub base: Option<String>,
}

impl TurnRules {
    /// Returns the rules for a reply of an agent: those for the reply itself, and the agent's place.
    pub(super) fn of(agent: &Agent, reply: ReplyRules) -> Self {
        Self {
            reply: ReplyRules {
                needs_outputs: agent.result_leaves_folder() && agent.task().is_none(),
                ..reply
            },
            forks: ForkRules::default(),
            on_denied: OnDenied::default(),
            runs_command: false,
            is_for_graph: agent.graph().is_some(),
            state: agent.current_state.clone(),
            folder: agent.folder(),
            working_dir: agent.spec.working_dir.clone(),
            base: agent.spec.base.clone(),
        }
    }
}

/// The outcome of a reply.
#[derive(Debug, Clone)]
pub enum ReplyOutcome {
    /// The judgement, from which the agent's next step follows.
    Judged(JudgedReply),
    /// The result of a task; the graph that asked for it continues with it.
    TaskDone(WaitResult),
    /// The turn failed: a tool was refused where that counts as a failure, or an evaluator said nothing.
    Failed(TurnFailure),
}

impl TurnRules {
    /// Returns the outcome of a reply to the turn.
    pub fn outcome(&self, reply: &TurnReply, source: &dyn WorkflowSource) -> ReplyOutcome {
        if let Some(failure) = TurnFailure::of_refused_tools(reply, self.on_denied) {
            return ReplyOutcome::Failed(failure);
        }
        let may_be_empty = reply.is_given || (self.runs_command && reply.asked_no_model);
        let judged_reply = if reply.is_empty() && !may_be_empty {
            if self.reply.proposal.is_some() {
                // An evaluator is asked again, because it is not reminded.
                let failure =
                    TurnFailure::of_reply(reply, FailureCause::Crash, "the reply is empty");
                return ReplyOutcome::Failed(failure);
            }
            self.reply.judge_empty(source).into()
        } else if self.is_for_graph {
            match self.reply.task_result(reply, source) {
                Ok(result) => return ReplyOutcome::TaskDone(result),
                Err(judgement) => (*judgement).into(),
            }
        } else {
            self.reply.judge(reply, source)
        };
        ReplyOutcome::Judged(self.described(judged_reply, reply))
    }

    /// Adds what the reply shows to people. A hook that kept the turn from ending is named with what is wrong.
    pub(super) fn described(&self, mut judged: JudgedReply, reply: &TurnReply) -> JudgedReply {
        judged.shown = self.reply.shown(reply);
        if let (TurnJudgement::Violated { violation, .. }, Some(hook)) =
            (&mut judged.judgement, &reply.hook)
        {
            let _ = write!(violation, "; a Stop hook kept the turn from ending: {hook}");
        }
        judged
    }
}

/// Returns what an agent waits for before the turn of its state: agents that it has forked, or a permit. An unreadable
/// state tells its error when its turn is prepared.
pub(super) fn enter(environment: &ResumeEnvironment<'_>) -> ResumeOutcome {
    let agent = environment.agent;
    let join = if agent.has_untouched_prompt() {
        step::join_with(&agent.current_state, environment.source, &|name| {
            environment.document(name)
        })
        .ok()
        .flatten()
    } else {
        None
    };
    join.map_or(ResumeOutcome::AwaitsPermit, |join| ResumeOutcome::JoinDue(Box::new(join)))
}

/// Prepares the pending turn: of the state's prompt, of its evaluator, or of a task.
pub(super) fn prepare(permit: TurnPermit, environment: &ResumeEnvironment<'_>) -> ResumeOutcome {
    let agent = environment.agent;
    let failed = |why| ResumeOutcome::Failed(TurnFailure::new(FailureCause::Workflow, why));
    let results = environment.join_results();
    let asked = match read(results.clone(), environment) {
        Ok(asked) => asked,
        Err(error) => return failed(error.to_string()),
    };
    if let Some(join) = asked.join.filter(|_| agent.has_untouched_prompt()) {
        return ResumeOutcome::JoinDue(Box::new(join));
    }
    let on_denied = asked.options.on_denied;
    let options = match permitted_options(asked.options, &asked.option_site, environment) {
        Ok(options) => options,
        Err(why) => return failed(why),
    };
    let settings = environment.settings;
    let reply = ReplyRules {
        policy: asked.policy,
        output: asked.output,
        evaluator: asked.evaluator,
        proposal: agent.proposal().cloned().map(Box::new),
        task: agent.task().cloned().map(Box::new),
        needs_outputs: false,
    };
    let options = with_granted_rules(options, environment);
    let output = reply.output.as_ref().map(|contract| Arc::clone(contract.schema.text()));
    let rules = TurnRules {
        forks: asked.forks,
        on_denied: on_denied.unwrap_or(settings.on_denied),
        runs_command: options.runs_command(),
        ..TurnRules::of(agent, reply)
    };
    let file = asked.values.get(RESULTS_FILE).filter(|_| results.is_some());
    let input = TurnInput {
        version: TURN_VERSION,
        turn: agent.turn_id(),
        state: agent.prompt().clone(),
        folder: agent.folder(),
        working_dir: agent.spec.working_dir.clone(),
        reads_results: file.is_some_and(|file| asked.prompt.contains(file.as_str())),
        visit: agent.visit(),
        session: agent.turn_session().clone(),
        model: asked.model.or_else(|| settings.model.clone()),
        options,
        max_cost: permit.spending_limit,
        output,
        limits: environment.limits,
        failed_before: agent.last_failure,
        prompt: with_messages(
            with_uncertainty_note(agent, asked.prompt, rules.runs_command),
            agent,
        ),
        values: asked.values,
    };
    let unfilled = asked.unfilled;
    ResumeOutcome::Turn(Box::new(PreparedTurn { permit, input, rules, results, unfilled }))
}

/// Adds the messages of people that belong to the turn to its prompt. An evaluator's turn is not the agent's own.
fn with_messages(mut prompt: String, agent: &Agent) -> String {
    if agent.proposal().is_none() {
        for text in agent.orders.taken() {
            prompt.push_str("\n\n");
            prompt.push_str(&PersonMessage::for_model(text));
        }
    }
    prompt
}

/// Returns the options of a turn with the rules that a person has given for it, with an approval or when the run was
/// started. They are not rules of the workflow, so they may go beyond what its states may have. A state that only
/// plans, or whose file was changed since the run began, gets none of them.
fn with_granted_rules(options: TurnOptions, environment: &ResumeEnvironment<'_>) -> TurnOptions {
    let prompt = prompt_place(environment.agent);
    let is_usable = |granted: &&GrantedRule| {
        options.asks_for_approval() && granted.is_for(&prompt) && granted.rule.fits_argument()
    };
    let plan = PermissionMode::Plan;
    let of_run =
        effective_permission(environment.settings) == RunPermission::Mode(plan.name().to_owned());
    let plans = options.permission_mode.map_or(of_run, |mode| mode == plan);
    if plans || !environment.source.is_as_pinned(asked_file(environment.agent)) {
        return options;
    }
    let approved = environment.granted_rules.iter().filter(is_usable);
    let given = environment.settings.consent.every_state.iter().cloned();
    let further: Vec<String> =
        approved.map(|granted| granted.rule.to_string()).chain(given).collect();
    options.with_allowed_tools(further)
}

/// Returns the text that a turn is asked, after a note about calls that may have run. A command stays at the beginning.
fn with_uncertainty_note(agent: &Agent, prompt: String, runs_command: bool) -> String {
    let prompt = agent.asked_text(prompt);
    match agent.approvals.uncertainty_note() {
        Some(note) if runs_command && prompt.trim_start().starts_with('/') => {
            format!("{prompt}\n\n{note}")
        }
        Some(note) => format!("{note}\n\n{prompt}"),
        None => prompt,
    }
}

/// Reads the prompt of the pending turn.
pub(super) fn read(
    results: Option<JoinResults>,
    environment: &ResumeEnvironment<'_>,
) -> Result<PreparedPrompt, step::Error> {
    let (agent, source) = (environment.agent, environment.source);
    let position = PromptContext {
        workflow: environment.run.clone(),
        agent: agent.id.clone(),
        state: agent.current_state.clone(),
        variables: agent.placeholder_values(),
        results,
        run_variables: environment.settings.variables.clone(),
    };
    let read: &DocumentReader<'_> = &|name| environment.document(name);
    match (agent.task(), agent.proposal()) {
        (Some(task), _) => step::task(&position, task),
        (None, Some(proposal)) => step::evaluation(&position, proposal, source, read),
        (None, None) => step::step_with(&position, source, read),
    }
}

/// Returns the options of a turn, those of the run among them.
///
/// # Errors
/// The reason why it must not start: it asks for more than the person who started the run allowed.
fn permitted_options(
    of_state: TurnOptions,
    site: &OptionSite,
    environment: &ResumeEnvironment<'_>,
) -> Result<TurnOptions, String> {
    let of_state = match environment.agent.folder() {
        Some(folder) => of_state.below(&folder),
        None => of_state,
    };
    check_unpinned(&of_state, environment)?;
    let options = of_state.or(&environment.settings.options);
    match environment.ceiling.widenings(&options).into_iter().next() {
        None => Ok(options),
        Some(OptionWidening { key, part, message }) => {
            let place = site.place_of(key, part.as_deref());
            Err(format!("{place}: {key}: {message}"))
        }
    }
}

/// Returns the file whose prompt an agent's turn is asked.
fn asked_file(agent: &Agent) -> &StateName {
    let evaluator = agent.proposal().map(|proposal| &proposal.evaluator);
    evaluator.unwrap_or(&agent.current_state)
}

/// Checks that a state which is read afresh asks for no more than it did when the run began.
fn check_unpinned(
    of_state: &TurnOptions,
    environment: &ResumeEnvironment<'_>,
) -> Result<(), String> {
    let ceiling = environment.ceiling.without_consent();
    let Some(widening) = ceiling.widenings(of_state).into_iter().next() else { return Ok(()) };
    let (file, source) = (asked_file(environment.agent), environment.source);
    if source.is_as_pinned(file) {
        return Ok(());
    }
    let (path, key) = (source.path(file), widening.key);
    Err(format!(
        "{path}: {key}: this widens permissions in a file that was changed since the run began; use the new file with --migrate, or leave the key out"
    ))
}
