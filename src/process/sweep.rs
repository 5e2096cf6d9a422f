//! Ends what a run has left behind: its idle processes, and those of turns that are over.

use std::time::Duration;

use tokio::task::spawn_blocking;

use super::child::cgroup::ProcessCgroup;
use super::child::{orphans, subreaper};
use super::claude::ClaudeRunner;
use super::config_files::remove_all_configs_but;
use super::transcript::TurnFiles;
use crate::domain::turn::TurnId;

/// The longest time to wait for the last processes of a run to end before they are killed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

impl ClaudeRunner {
    /// Ends every process that bears the run's mark, except those of the turns to `keep`;
    /// returns their number.
    pub async fn sweep(&self, keep: &[TurnId]) -> usize {
        if keep.is_empty() {
            self.pool.drain().into_iter().for_each(|worker| self.retire(worker));
            let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.pool.empty()).await;
        }
        let keep: Vec<String> = keep.iter().map(|turn| self.process_of(turn)).collect();
        let is_over = |process: &str| !keep.iter().any(|kept| kept == process);
        let ended = orphans::sweep(&self.marker, is_over).await;
        self.groups.end_all_but(&self.groups_of(&keep).await).await;
        if keep.is_empty() {
            subreaper::end_all(&self.marker).await;
        }
        remove_all_configs_but(&self.steps, &keep);
        ended
    }

    /// Returns the control groups of processes that an earlier raymond started.
    async fn groups_of(&self, processes: &[String]) -> Vec<ProcessCgroup> {
        if processes.is_empty() {
            return Vec::new();
        }
        let marker = self.marker.clone();
        let found = spawn_blocking(move || orphans::find(&marker)).await.unwrap_or_default();
        let kept = found.iter().filter(|orphan| processes.contains(&orphan.process));
        kept.filter_map(|orphan| self.groups.find(orphan.pid)).collect()
    }

    /// Returns the name of the files of the process that serves a turn.
    fn process_of(&self, turn: &TurnId) -> String {
        let turn_offset = TurnFiles::of(&self.steps, turn).turn_offset();
        turn_offset.map_or_else(|| turn.stem(), |turn_offset| turn_offset.process)
    }
}
