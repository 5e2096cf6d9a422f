//! A plug-in that gives each agent a budget, and stops an agent that has spent it.
//!
//! `cargo run --example budget -- WORKFLOW DOLLARS`; without arguments it runs the tour under a script, with
//! a cent for each agent.

#![expect(clippy::print_stdout, reason = "a program that shows what came of it")]

use actix::{Actor, Context, Handler};
use raymond::domain::money::Usd;
use raymond::domain::settings::AnswererKind;
use raymond::runtime::{Error, RunOutcome};
use raymond::{Consult, ConsultVerdict, Consultation, Published, Runtime, StopScope};

/// The plug-in, with the budget of each agent.
struct BudgetPlugIn {
    each: Usd,
}

impl Actor for BudgetPlugIn {
    type Context = Context<Self>;
}

impl Handler<Published> for BudgetPlugIn {
    type Result = ();

    /// Ignores the records: a consultation says what its agent has spent.
    fn handle(&mut self, _: Published, _: &mut Self::Context) {}
}

impl Handler<Consult> for BudgetPlugIn {
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

/// Runs a workflow with the plug-in. No turn may start without it, so it is required.
pub(crate) fn run(workflow: &str, dir: &str, each: Usd) -> Result<RunOutcome, Error> {
    Runtime::builder()
        .workflow(workflow)
        .dir(dir)
        .configure(|settings| settings.answerer = AnswererKind::Scripted)
        .required(true)
        .interceptor("budget", BudgetPlugIn { each })
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
