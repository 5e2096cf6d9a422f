//! A plug-in that writes a line for each event, with the agent's cost so far.
//!
//! `cargo run --example logging -- WORKFLOW`; without arguments it runs the tour under a script.

#![expect(clippy::print_stdout, reason = "a program that shows what came of it")]

use std::io::Write;

use actix::{Actor, Context, Handler};
use raymond::domain::settings::AnswererKind;
use raymond::plugin::sentence::sentence;
use raymond::runtime::{Error, RunOutcome};
use raymond::{Published, Runtime};

/// The plug-in, which writes to any writer.
struct LogWriter<W> {
    to: W,
}

impl<W: Write + Unpin + 'static> Actor for LogWriter<W> {
    type Context = Context<Self>;
}

impl<W: Write + Unpin + 'static> Handler<Published> for LogWriter<W> {
    type Result = ();

    /// Writes the line of a record, after the number of records that were missed. A plug-in that is too slow
    /// misses records, because the run never waits for it.
    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        if published.missed > 0 {
            let _ = writeln!(self.to, "… {} records missed", published.missed);
        }
        let spent = published.agent.map_or(published.total_cost, |agent| agent.cost);
        let _ = writeln!(
            self.to,
            "{:>4} {} ({spent})",
            published.record.seq,
            sentence(&published.record)
        );
    }
}

pub(crate) fn run(
    workflow: &str,
    dir: &str,
    to: impl Write + Unpin + Send + 'static,
) -> Result<RunOutcome, Error> {
    Runtime::builder()
        .workflow(workflow)
        .dir(dir)
        .configure(|settings| settings.answerer = AnswererKind::Scripted)
        .observer("log", LogWriter { to })
        .run_here()
}

fn main() -> Result<(), Error> {
    let workflow = std::env::args().nth(1).unwrap_or_else(|| "workflows/tour".to_owned());
    let outcome = run(&workflow, ".raymond", std::io::stderr())?;
    println!("{} spent", outcome.cost());
    Ok(())
}
