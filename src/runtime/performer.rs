//! Who performs what graphs and programs ask for: the world of a run, and the dataspace of its directory.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::spawn_blocking;

use crate::actor::clock::now;
use crate::actor::performer::{Errands, Found, Performed, Performer};
use crate::actor::runner::Local;
use crate::domain::fact::{FactChange, Facts};
use crate::domain::home::Home;
use crate::domain::id::{AgentId, RunId};
use crate::domain::instance::{Errand, Fetched};
use crate::domain::operation::Operation;
use crate::domain::privilege::Privilege;
use crate::domain::turn::TurnId;
use crate::store;
use crate::store::dataspace::{Dataspace, Statement, Step, Watch};
use crate::store::workflow::Directory;
use crate::world::outcome::Looked;
use crate::world::perform::World;

/// The world and the dataspace of a run.
pub(super) struct Ours {
    run: RunId,
    world: World,
    space: Dataspace,
    /// The workflow's files, if it may run commands and reach other machines.
    trusted: Option<Directory>,
    /// Whether it is to end.
    ends: Arc<AtomicBool>,
    watch: RefCell<Watch>,
    /// What someone has been warned of.
    warned: RefCell<HashSet<String>>,
}

impl Ours {
    pub(super) fn new(
        run: RunId,
        world: World,
        space: Dataspace,
        trusted: Option<Directory>,
    ) -> Self {
        let watch = RefCell::new(Watch::new(space.clone()));
        let ends = Arc::default();
        let space = space.until(Arc::clone(&ends));
        Self { run, world, space, trusted, ends, watch, warned: RefCell::default() }
    }

    /// Refuses what the person who started the run did not trust.
    fn admit(&self, operation: &Operation) -> Result<(), String> {
        let Some(privilege) = operation.privilege() else { return Ok(()) };
        let Some(scope) = &self.trusted else { return Err(not_trusted(privilege)) };
        let Operation::BashExec { command } = operation else { return Ok(()) };
        match scope.changed_file_in(command) {
            None => Ok(()),
            Some(file) => Err(format!(
                "the command names {file}, a file of the workflow that was changed since the run began; give its old content back, or take it up with --migrate"
            )),
        }
    }

    fn warn_once(&self, warning: &str) {
        if self.warned.borrow_mut().insert(warning.to_owned()) {
            tracing::warn!("{warning}");
        }
    }

    /// Changes the dataspace for a step of a program.
    async fn change(&self, turn: &TurnId, errand: Errand) -> Errands {
        let step = Step { run: self.run.clone(), agent: turn.agent.clone(), step: turn.step };
        let space = self.space.clone();
        let source = format!("{}/{}", self.run, turn.agent);
        let changing = spawn_blocking(move || changed(&space, &step, &source, &errand));
        match changing.await {
            Ok(Ok(fetched)) => Errands::Done(Ok(fetched)),
            Ok(Err(error @ store::Error::Unfit(_))) => Errands::Done(Err(error.to_string())),
            Ok(Err(_)) if self.ends.load(Ordering::Relaxed) => Errands::Ended,
            Ok(Err(error)) => Errands::Stuck(error.to_string()),
            Err(panicked) => Errands::Done(Err(panicked.to_string())),
        }
    }
}

fn changed(
    space: &Dataspace,
    step: &Step,
    source: &str,
    errand: &Errand,
) -> Result<Fetched, store::Error> {
    space.settled(step)?;
    match errand {
        Errand::Assert { label, key, value } => {
            space.assert(Statement { label, key, value, source, at: now() }, Some(step))?;
        }
        Errand::Retract { label, key } => {
            space.retract(label, key, Some(step))?;
        }
        Errand::Claim { label, key, seq } => {
            return space.claim(label, key, *seq, step).map(Fetched::Claimed);
        }
        Errand::Bases { .. } | Errand::Changes { .. } => {}
    }
    Ok(Fetched::Done)
}

/// Returns the reason why an operation is not performed. What a workflow asks for is found before it runs,
/// so this is met only by what was not found then.
fn not_trusted(privilege: Privilege) -> String {
    format!(
        "this {}, and the run was started without trust in the workflow's folder; go on with --trust",
        privilege.meaning()
    )
}

fn found<T>(looked: Looked<T>) -> Found<T> {
    match looked {
        Looked::Done(outcome) => Found::Done(outcome),
        Looked::Interrupted => Found::Ended,
    }
}

impl Performer for Ours {
    fn perform(
        self: Rc<Self>,
        name: String,
        home: Home,
        operation: Operation,
        again: bool,
    ) -> Local<Performed> {
        Box::pin(async move {
            if let Err(why) = self.admit(&operation) {
                return Performed::Done(Err(why));
            }
            match self.world.at(&home) {
                Ok(world) => world.perform(&name, &operation, again).await,
                Err(why) => Performed::Done(Err(why)),
            }
        })
    }

    fn text(self: Rc<Self>, home: Home, file: String, most: u64) -> Local<Found<String>> {
        Box::pin(async move {
            match self.world.at(&home) {
                Ok(world) => found(world.text(&file, most).await),
                Err(why) => Found::Done(Err(why)),
            }
        })
    }

    fn directory(self: Rc<Self>, home: Home) -> Local<Found<()>> {
        Box::pin(async move { Found::Done(self.world.at(&home).map(drop)) })
    }

    fn commit(self: Rc<Self>, name: String, home: Home) -> Local<Found<String>> {
        Box::pin(async move {
            match self.world.at(&home) {
                Ok(world) => found(world.head(&name).await),
                Err(why) => Found::Done(Err(why)),
            }
        })
    }

    fn worktree(self: Rc<Self>, agent: AgentId, base: Option<String>) -> Local<Found<()>> {
        Box::pin(async move { found(self.world.worktree(&agent, base.as_deref()).await) })
    }

    fn whereabouts(&self, home: &Home) -> Option<String> {
        let world = self.world.at(home).ok()?;
        Some(world.root().display().to_string())
    }

    fn fetch(
        self: Rc<Self>,
        turn: TurnId,
        home: Home,
        errand: Errand,
        again: bool,
    ) -> Local<Errands> {
        Box::pin(async move {
            let stem = turn.stem();
            if !matches!(errand, Errand::Bases { .. } | Errand::Changes { .. }) {
                return self.change(&turn, errand).await;
            }
            let world = match self.world.at(&home) {
                Ok(world) => world,
                Err(why) => return Errands::Done(Err(why)),
            };
            let looked = match &errand {
                Errand::Bases { directories, branch } => {
                    world.bases(&stem, directories, branch.as_deref(), again).await
                }
                Errand::Changes { directory, base } => {
                    world.changes(&stem, directory, base, again).await
                }
                _ => return self.change(&turn, errand).await,
            };
            match looked {
                Looked::Done(outcome) => Errands::Done(outcome),
                Looked::Interrupted => Errands::Ended,
            }
        })
    }

    fn news(&self, labels: &BTreeSet<String>, known: &Facts) -> Result<Vec<FactChange>, String> {
        let news =
            self.watch.borrow_mut().news(labels, known).map_err(|error| error.to_string())?;
        for warning in &news.warnings {
            self.warn_once(warning);
        }
        Ok(news.changes)
    }

    fn stop(&self) {
        self.ends.store(true, Ordering::Relaxed);
        self.world.stop();
    }
}
