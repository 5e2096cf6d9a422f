//! A plug-in that checks the length of each result, and sends an agent back whose result is too short.
//!
//! `cargo run --example evaluator -- WORKFLOW STATE LENGTH`: an agent that ends with fewer characters
//! continues in STATE instead, three times at most.

#![expect(clippy::print_stdout, reason = "a program that shows what came of it")]

use std::collections::HashMap;

use actix::{Actor, Context, Handler};
use raymond::domain::id::{AgentId, StateName};
use raymond::domain::settings::AnswererKind;
use raymond::domain::transition::{Transition, Variables};
use raymond::runtime::{Error, RunOutcome};
use raymond::{Consult, ConsultVerdict, Consultation, Published, Runtime};

/// The plug-in, with the least length of a result and the state in which an agent makes it longer.
struct LengthEvaluator {
    least: usize,
    back_to: StateName,
    sent_back: HashMap<AgentId, u32>,
}

impl Actor for LengthEvaluator {
    type Context = Context<Self>;
}

impl Handler<Published> for LengthEvaluator {
    type Result = ();

    fn handle(&mut self, _: Published, _: &mut Self::Context) {}
}

impl Handler<Consult> for LengthEvaluator {
    type Result = ConsultVerdict;

    fn handle(&mut self, Consult(question): Consult, _: &mut Self::Context) -> ConsultVerdict {
        let Consultation::Transition(asked) = question else { return ConsultVerdict::Proceed };
        let Transition::Result { payload, .. } = &asked.transition else {
            return ConsultVerdict::Proceed;
        };
        let times = self.sent_back.entry(asked.turn.agent).or_default();
        if payload.chars().count() >= self.least || *times == 3 {
            return ConsultVerdict::Proceed;
        }
        *times += 1;
        let reason = format!("{} characters are not enough", payload.chars().count());
        let target = self.back_to.clone();
        let transition = Transition::Goto { target, scope: None, variables: Variables::new() };
        ConsultVerdict::Override { transition, reason }
    }
}

pub(crate) fn run(
    workflow: &str,
    dir: &str,
    back_to: StateName,
    least: usize,
) -> Result<RunOutcome, Error> {
    Runtime::builder()
        .workflow(workflow)
        .dir(dir)
        .configure(|settings| settings.answerer = AnswererKind::Scripted)
        .interceptor("evaluator", LengthEvaluator { least, back_to, sent_back: HashMap::new() })
        .run_here()
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let workflow = arguments.next().unwrap_or_else(|| "workflows/improve".to_owned());
    let back_to = StateName::parse(&arguments.next().unwrap_or_else(|| "START.md".to_owned()))?;
    let least = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10);
    let outcome = run(&workflow, ".raymond", back_to, least)?;
    println!("{:?}, {} spent", outcome.result(&AgentId::main()), outcome.cost());
    Ok(())
}
