//! Preconditions and consequences of one's own: a graph looks into a warehouse, and orders from it.
//!
//! `cargo run --example own_types -- WORKFLOW`; without arguments it runs `examples/order`. The plain
//! `raymond` refuses that graph, because it knows neither `in_stock` nor `reserve`.

#![expect(clippy::print_stdout, reason = "a program that shows what came of it")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use raymond::domain::id::AgentId;
use raymond::runtime::{Error, RunOutcome};
use raymond::{OperationResult, RecoveryClass, Runtime};
use serde_json::{Map, Value, json};

/// The stock, and the number of orders so far.
#[derive(Debug, Default)]
pub(crate) struct Warehouse {
    pub(crate) stock: BTreeMap<String, u64>,
    pub(crate) orders: u64,
}

impl Warehouse {
    fn has(&self, parameters: &Map<String, Value>) -> OperationResult {
        let (item, count) = wanted(parameters)?;
        Ok(json!(self.stock.get(item).is_some_and(|&there| there >= count)))
    }

    fn reserve(&mut self, parameters: &Map<String, Value>) -> OperationResult {
        let (item, count) = wanted(parameters)?;
        let there = self.stock.get_mut(item).ok_or_else(|| format!("there is no {item}"))?;
        *there = there.checked_sub(count).ok_or_else(|| format!("there are only {there}"))?;
        self.orders += 1;
        Ok(json!({ "number": self.orders, "left": *there }))
    }
}

fn wanted(parameters: &Map<String, Value>) -> Result<(&str, u64), String> {
    let item = parameters["item"].as_str().ok_or("`item` is not a text")?;
    let count = parameters.get("count").map_or(Some(1), Value::as_u64);
    Ok((item, count.ok_or("`count` is not a number")?))
}

/// Runs a graph that may use the warehouse. After a crash it is unknown whether an order arrived, so
/// `reserve` is uncertain, and the restart policy decides.
pub(crate) fn run(
    workflow: &str,
    dir: &str,
    warehouse: &Arc<Mutex<Warehouse>>,
) -> Result<RunOutcome, Error> {
    let (looks, orders) = (Arc::clone(warehouse), Arc::clone(warehouse));
    Runtime::builder()
        .workflow(workflow)
        .dir(dir)
        .precondition("in_stock", &["item"], &["count"], move |parameters| {
            let answer = looks.lock().unwrap_or_else(PoisonError::into_inner).has(&parameters);
            async move { answer }
        })
        .consequence(
            "reserve",
            &["item"],
            &["count"],
            RecoveryClass::Uncertain,
            move |parameters| {
                let done =
                    orders.lock().unwrap_or_else(PoisonError::into_inner).reserve(&parameters);
                async move { done }
            },
        )
        .run_here()
}

fn main() -> Result<(), Error> {
    let workflow = std::env::args().nth(1).unwrap_or_else(|| "examples/order".to_owned());
    let stock = BTreeMap::from([("lamp".to_owned(), 5)]);
    let warehouse = Arc::new(Mutex::new(Warehouse { stock, orders: 0 }));
    let outcome = run(&workflow, ".raymond", &warehouse)?;
    println!("{:?}", outcome.result(&AgentId::main()));
    Ok(())
}
