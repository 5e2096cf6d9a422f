//! The worktrees of agents: made before an agent's first turn, looked at, and removed without losing work.
//!
//! A [mark](crate::process::home::Mark) is durable before git begins with one, so that a branch of somebody else's is never taken, and
//! what a git that was killed left half made is known to be raymond's own and made again. The commands that
//! change one repository come one after another, and no hook of it runs.

mod keep;
mod look;
mod make;
mod remove;
mod repository;

use std::path::Path;

use tokio::task::JoinSet;

use self::look::Looking;
pub use self::look::Sight;
use self::make::Making;
pub use self::remove::Removed;
use self::remove::Removing;
use self::repository::Repository;
use super::git::{Git, refusal};
use super::outcome::{Looked, Trouble};
use super::perform::World;
use crate::domain::id::AgentId;
use crate::domain::worktree::Stay;
use crate::process::home::{Mark, Stage};
use crate::process::leftover;
use crate::process::program::Ended;
use crate::process::verdict::Exit;

impl World {
    /// The commit that its directory is at. `stem` names who asks, fit for a file.
    pub async fn head(&self, stem: &str) -> Looked<String> {
        if self.0.is_stopped() {
            return Looked::Interrupted;
        }
        let git = Git { shared: &self.0, stem };
        let head = async {
            let repository = Repository::of(git, self.root()).await?;
            repository.head(git).await
        };
        head.await.into()
    }

    /// Sees to it that an agent's worktree is there: it is made at `base`, or else at the commit that the
    /// nearest of its ancestors with a worktree is at, or else the run's own directory.
    pub async fn worktree(&self, agent: &AgentId, base: Option<&str>) -> Looked<()> {
        if self.0.is_stopped() {
            return Looked::Interrupted;
        }
        let stem = format!("{}.worktree", agent.file_name());
        let git = Git { shared: &self.0, stem: &stem };
        let made = Making { git, agent, base }.make().await;
        let told = |trouble| match trouble {
            Trouble::Failed(why) => Trouble::Failed(format!(
                "cannot make the worktree of the agent {agent} at {}: {why}",
                self.0.place.homes.tree(agent).display()
            )),
            other => other,
        };
        made.map_err(told).into()
    }

    /// All worktrees of the run, and what is to be seen of each, or why nothing is.
    pub async fn trees(&self) -> Looked<Vec<(Mark, Result<Sight, String>)>> {
        self.all().await.into()
    }

    async fn all(&self) -> Result<Vec<(Mark, Result<Sight, String>)>, Trouble> {
        let marks = self.0.place.homes.marks()?;
        if marks.is_empty() {
            return Ok(Vec::new());
        }
        let git = Git { shared: &self.0, stem: LOOKS };
        let repository = Repository::of(git, self.0.place.homes.root()).await?;
        let mut looks = JoinSet::new();
        for (number, mark) in marks.into_iter().enumerate() {
            let (world, repository) = (self.clone(), repository.clone());
            looks.spawn(async move {
                let git = Git { shared: &world.0, stem: LOOKS };
                let look = Looking { git, repository: &repository, mark: &mark };
                (number, look.look().await, mark)
            });
        }
        let mut seen = Vec::new();
        while let Some(look) = looks.join_next().await {
            let (number, look, mark) = look.map_err(|error| error.to_string())?;
            let look = match look {
                Ok(sight) => Ok(sight),
                Err(Trouble::Interrupted) => return Err(Trouble::Interrupted),
                Err(Trouble::Failed(why) | Trouble::Lost(why)) => Err(why),
            };
            seen.push((number, (mark, look)));
        }
        seen.sort_by_key(|(number, _)| *number);
        Ok(seen.into_iter().map(|(_, tree)| tree).collect())
    }

    /// Removes an agent's worktree, if it may go; `live` says that somebody works in it, and `all` that it may go
    /// also where a commit has to be made to keep what is in it, or its branch has to stay.
    pub async fn remove_tree(
        &self,
        agent: &AgentId,
        live: bool,
        all: bool,
    ) -> Looked<Result<Removed, Stay>> {
        let removed = async {
            let homes = &self.0.place.homes;
            let _turn = self.0.turn(&homes.mark_file(agent)).await?;
            let Some(mark) = homes.mark(agent)? else { return Ok(Ok(Removed::default())) };
            let stem = format!("{}.worktree", agent.file_name());
            if mark.stage != Stage::Ready {
                leftover::sweep(&self.0.place.marker, |process| process == stem).await;
            }
            let git = Git { shared: &self.0, stem: &stem };
            let repository = Repository::of(git, homes.root()).await?;
            let _turn = self.0.turn(&repository.common).await?;
            Removing { git, repository: &repository, live, all }.remove(mark).await
        };
        removed.await.into()
    }
}

/// For whom git looks at worktrees.
const LOOKS: &str = "worktrees";

/// What git said, if it has nothing to complain of.
fn well(words: &[&str], ended: Ended) -> Result<Ended, Trouble> {
    match ended.exit {
        Exit::Code(0) => Ok(ended),
        _ => Err(refusal(words, &ended).into()),
    }
}

/// Why a worktree that is being made is locked, as git tells others who look at it.
fn reason(tree: &Path) -> String {
    format!("raymond is making {}", tree.display())
}
