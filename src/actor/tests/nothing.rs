//! A world in which nothing is there and nobody does anything.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::actor::performer::{Errands, Found, Performed, Performer};
use crate::actor::runner::Local;
use crate::domain::fact::{FactChange, Facts};
use crate::domain::home::Home;
use crate::domain::id::AgentId;
use crate::domain::instance::Errand;
use crate::domain::operation::Operation;
use crate::domain::turn::TurnId;

/// Performs nothing.
pub(super) struct Nothing;

impl Performer for Nothing {
    fn text(self: Rc<Self>, _: Home, file: String, _: u64) -> Local<Found<String>> {
        Box::pin(async move { Found::Done(Err(format!("there is no {file} here"))) })
    }

    fn directory(self: Rc<Self>, _: Home) -> Local<Found<()>> {
        Box::pin(async { Found::Done(Ok(())) })
    }

    fn commit(self: Rc<Self>, _: String, _: Home) -> Local<Found<String>> {
        Box::pin(async { Found::Done(Err("there is no repository here".to_owned())) })
    }

    fn worktree(self: Rc<Self>, _: AgentId, _: Option<String>) -> Local<Found<()>> {
        Box::pin(async { Found::Done(Err("there is no repository here".to_owned())) })
    }

    fn perform(self: Rc<Self>, name: String, _: Home, _: Operation, _: bool) -> Local<Performed> {
        Box::pin(std::future::ready(Performed::Done(Err(format!("nobody performs {name}")))))
    }

    fn fetch(self: Rc<Self>, step: TurnId, _: Home, _: Errand, _: bool) -> Local<Errands> {
        Box::pin(std::future::ready(Errands::Done(Err(format!("nobody performs {step}")))))
    }

    fn news(&self, _: &BTreeSet<String>, _: &Facts) -> Result<Vec<FactChange>, String> {
        Ok(Vec::new())
    }

    fn stop(&self) {}
}
