//! A plug-in that gives each agent a budget, and stops one that has spent it.
//!
//! `cargo run --example budget -- WORKFLOW DOLLARS`; without a word it is the tour, under a script,
//! at a cent for each agent.

#![expect(clippy::print_stdout, reason = "a program that shows what came of it")]

use actix::{Actor, Context, Handler};
use raymond::domain::money::Usd;
use raymond::domain::settings::AnswererKind;
use raymond::runtime::{Error, RunOutcome};
use raymond::{Consult, ConsultVerdict, Consultation, Published, Runtime, StopScope};

/// What each agent may spend.
struct Budget {
    each: Usd,
}

impl Actor for Budget {
    type Context = Context<Self>;
}

impl Handler<Published> for Budget {
    type Result = ();

    /// It needs to remember nothing: what an agent has spent stands in the question.
    fn handle(&mut self, _: Published, _: &mut Self::Context) {}
}

impl Handler<Consult> for Budget {
    type Result = ConsultVerdict;

    fn handle(&mut self, Consult(question): Consult, _: &mut Self::Context) -> ConsultVerdict {
        match question {
            Consultation::Start(start) if start.spent.agent_cost_usd >= self.each => {
                ConsultVerdict::Stop {
                    reason: format!("{} of {} spent", start.spent.agent_cost_usd, self.each),
                    scope: StopScope::Agent,
                }
            }
            _ => ConsultVerdict::Proceed,
        }
    }
}

/// Runs a workflow with the plug-in; without it, nothing may start, so it is required.
pub(crate) fn run(workflow: &str, dir: &str, each: Usd) -> Result<RunOutcome, Error> {
    Runtime::builder()
        .workflow(workflow)
        .dir(dir)
        .configure(|settings| settings.answerer = AnswererKind::Scripted)
        .required(true)
        .interceptor("budget", Budget { each })
        .run_here()
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let workflow = arguments.next().unwrap_or_else(|| "workflows/tour".to_owned());
    let each = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(0.01);
    let outcome = run(&workflow, ".raymond", Usd::from_dollars(each))?;
    for agent in outcome.run.finished {
        println!("{}: {:?}, {}", agent.id, agent.ending, agent.cost_usd);
    }
    Ok(())
}
