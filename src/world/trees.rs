//! The worktrees of agents: made before an agent's first turn, looked at, and removed without losing work.
//!
//! A [mark](crate::process::home::Mark) is durable before git begins with one, so that a branch of somebody else's is never taken, and
//! what a git that was killed left half made is known to be raymond's own and made again. The commands that
//! change one repository come one after another, and no hook of it runs.

mod make;
mod repository;

use std::path::Path;

use self::make::Making;
use self::repository::Repository;
use super::git::Git;
use super::outcome::{Looked, Trouble};
use super::perform::World;
use crate::domain::id::AgentId;

impl World {
    /// The commit that its directory is at. `stem` names who asks, fit for a file.
    pub async fn head(&self, stem: &str) -> Looked<String> {
        if self.0.is_stopped() {
            return Looked::Interrupted;
        }
        let git = Git { shared: &self.0, stem };
        let head = async {
            let repository = Repository::of(git, self.root()).await?;
            Ok::<String, Trouble>(repository.head(git).await?)
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
}

/// Why a worktree that is being made is locked, as git tells others who look at it.
fn reason(tree: &Path) -> String {
    format!("raymond is making {}", tree.display())
}
