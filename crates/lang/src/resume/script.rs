//! Resumes a script: executes it, and judges the tag at the end of its output as its reply.

use super::turn::{TurnRules, judged};
use super::{ResumeEnvironment, ResumeInput, ResumeOutcome, SuspendedExecution, lost, turn};
use crate::prompt::judgement::NO_POLICY;
use crate::prompt::judgement::{JudgedReply, ReplyRules};
use crate::prompt::script::{self, PreparedScript};
use crate::prompt::step::add_own;
use raymond_model::activity::Activity;
use raymond_model::decide::TurnJudgement;
use raymond_model::policy::TransitionPolicy;
use raymond_model::turn::{FailureCause, TurnFailure, TurnReply};

/// Resumes a script.
pub(super) fn resume_script(
    script: &PreparedScript,
    input: ResumeInput,
    environment: &ResumeEnvironment<'_>,
) -> ResumeOutcome {
    match input {
        ResumeInput::Entered => execute(script, environment),
        ResumeInput::Activity(Ok(result)) => {
            let value = result.into_value();
            let stdout = value["stdout"].as_str().unwrap_or_default();
            let reply = TurnReply { text: script::reply(stdout), ..TurnReply::default() };
            judge_script(&reply, environment)
        }
        ResumeInput::Activity(Err(why)) => {
            ResumeOutcome::Failed(TurnFailure::new(FailureCause::Crash, why))
        }
        // A repetition would be refused, too.
        ResumeInput::Refused(why) => {
            ResumeOutcome::Failed(TurnFailure::new(FailureCause::Workflow, why))
        }
        ResumeInput::Lost(why) => ResumeOutcome::Failed(lost(&why)),
        // A script takes no turns.
        ResumeInput::Permitted(permit) => turn::prepare(permit, environment),
        ResumeInput::Replied { rules, reply } => turn::judge(*rules, &reply, environment),
    }
}

fn execute(script: &PreparedScript, environment: &ResumeEnvironment<'_>) -> ResumeOutcome {
    let agent = environment.agent;
    let mut variables = environment.settings.variables.clone();
    variables.extend(agent.placeholder_values());
    add_own(&mut variables, environment.run, &agent.id, &agent.current_state);
    let operation = script.operation(&variables, environment.limits.timeout_ms);
    let suspended = SuspendedExecution::Entered;
    ResumeOutcome::Needs { activity: Activity::Operation(operation), suspended }
}

/// The advice for a tag whose quotes a shell has taken.
const LOST_QUOTES: &str =
    "; a shell takes quotes within \"…\": write \\\" there, or put the whole tag into '…'";

/// The advice for another end.
const EXAMPLE: &str = "; end it with a line such as: echo '<result>text</result>'";

/// Judges the reply of a script, which may take any transition. It is not reminded: it would do the same again.
fn judge_script(reply: &TurnReply, environment: &ResumeEnvironment<'_>) -> ResumeOutcome {
    let policy = TransitionPolicy { many_forks: true, ..TransitionPolicy::default() };
    let rules = ReplyRules { policy, ..ReplyRules::default() };
    let rules = TurnRules::of(environment.agent, rules);
    let JudgedReply { judgement, warning } = rules.reply.judge(reply, environment.source);
    let TurnJudgement::Violated { violation, .. } = judgement else {
        return judged(rules, reply, JudgedReply { judgement, warning });
    };
    let path = environment.source.path(&environment.agent.current_state);
    let line = match reply.text.as_str() {
        "" => "it printed nothing".to_owned(),
        text => format!("its last line is `{}`", text.lines().last().unwrap_or_default().trim()),
    };
    let violation = violation.replace(NO_POLICY, "");
    let why = format!(
        "{path}: the end of a script's output says what comes next by one tag; {line}: {violation}{}",
        if script::has_lost_quotes(&reply.text) { LOST_QUOTES } else { EXAMPLE }
    );
    ResumeOutcome::Failed(TurnFailure::new(FailureCause::Protocol, why))
}
