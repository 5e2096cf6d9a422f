//! What a run's graphs run with: the world they change, the types that are added to their language.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::performer::Ours;
use crate::actor::performer::Performer;
use crate::actor::programs::Programs;
use crate::actor::stay::Stay;
use crate::domain::id::RunId;
use crate::domain::operation::Class;
use crate::domain::settings::Settings;
use crate::language::graph::vocabulary::{Own, Role, Taken, Vocabulary};
use crate::process::command::Marker;
use crate::process::environment::{NamedVariables, passed_on};
use crate::process::home::Homes;
use crate::proof::StepProofs;
use crate::store::dataspace::Dataspace;
use crate::store::layout::Root;
use crate::store::workflow::Directory;
use crate::world::gate::NameLookup;
use crate::world::perform::World;
use crate::world::place::Place;
use crate::world::registry::{OwnType, Registry};

/// What a run's graphs run with.
#[derive(Debug, Default)]
pub struct Graphs {
    vocabulary: Vocabulary,
    own: Registry,
    /// Why the first type that could not be added was not.
    refused: Option<Taken>,
    /// Whether a graph that was edited since an agent entered it is taken as it is now.
    pub migrate: bool,
    /// Whether the run stays up while questions wait.
    pub stays: Stay,
}

impl Graphs {
    /// Adds a type of preconditions or consequences.
    ///
    /// # Errors
    /// [`Taken`] if there is one of that name.
    pub fn add(
        &mut self,
        name: &str,
        own: Own,
        performs: impl OwnType + 'static,
    ) -> Result<(), Taken> {
        self.vocabulary.add(name, own)?;
        self.own.add(name, performs);
        Ok(())
    }

    /// Adds a type, or remembers why it cannot be.
    pub(super) fn offer(&mut self, name: &str, own: Own, performs: impl OwnType + 'static) {
        let added = self.add(name, own, performs);
        self.refused = self.refused.take().or(added.err());
    }

    /// Whether all types could be added that were offered.
    pub(super) fn all_taken_up(&mut self) -> Result<(), Taken> {
        self.refused.take().map_or(Ok(()), Err)
    }

    /// The types their nodes may use.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    pub(super) fn programs(&self) -> Programs {
        Programs::new(self.vocabulary.clone(), self.migrate)
    }

    /// The world of a run, whose notes go into `steps`.
    pub(super) fn world(
        &self,
        homes: Homes,
        steps: (PathBuf, StepProofs),
        marker: Marker,
        space: Dataspace,
        (settings, scope): (&Settings, &Directory),
    ) -> Rc<dyn Performer> {
        let run = marker.run.clone();
        let world = world(homes, steps, marker, self.own.clone(), settings);
        let trusted = settings.consent.trusts_workflow.then(|| scope.clone());
        Rc::new(Ours::new(run, world, space, trusted))
    }
}

fn world(
    homes: Homes,
    (steps, proofs): (PathBuf, StepProofs),
    marker: Marker,
    own: Registry,
    settings: &Settings,
) -> World {
    let environment = passed_on(std::env::vars_os(), &NamedVariables::of(&settings.options));
    let allowed_addresses = settings.allowed_addresses.clone();
    let lookup = NameLookup::default();
    World::new(Place { homes, environment, steps, proofs, marker, allowed_addresses, lookup, own })
}

/// The homes of a run's agents.
#[must_use]
pub fn homes(root: &Root, id: &RunId, settings: &Settings) -> Homes {
    Homes::new(&settings.cwd, root.worktrees(id))
}

/// The world of a run's agents, for someone who looks after their worktrees.
#[must_use]
pub fn world_of(root: &Root, id: &RunId, settings: &Settings) -> World {
    let marker = Marker { run: id.clone(), dir: root.path().to_owned() };
    let steps = (root.run(id).steps(), StepProofs::default());
    world(homes(root, id, settings), steps, marker, Registry::default(), settings)
}

/// What graphs know of their surroundings.
pub(super) fn builtins(settings: &Settings) -> Map<String, Value> {
    let mut builtins = Map::new();
    let root = Path::new(&settings.cwd);
    let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    builtins.insert("PWD".to_owned(), root.display().to_string().into());
    if let Some(home) = std::env::var_os("HOME") {
        builtins.insert("HOME".to_owned(), home.to_string_lossy().into());
    }
    builtins
}

/// A type of preconditions: it only looks.
#[must_use]
pub fn precondition(required: &[&str], optional: &[&str]) -> Own {
    own(Role::Precondition, required, optional, Class::Read)
}

/// A type of consequences; `class` is what a crash in the middle of one means.
#[must_use]
pub fn consequence(required: &[&str], optional: &[&str], class: Class) -> Own {
    own(Role::Consequence, required, optional, class)
}

fn own(role: Role, required: &[&str], optional: &[&str], class: Class) -> Own {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Own { role, required: owned(required), optional: owned(optional), class }
}
