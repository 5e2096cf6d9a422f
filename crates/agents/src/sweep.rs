//! Ends what a run has left behind: its idle processes, and those of turns that are over.

use std::time::Duration;

use tokio::task::spawn_blocking;

use crate::captured_output;
use crate::child::cgroup::ProcessCgroup;
use crate::child::{orphans, subreaper};
use crate::config_files::remove_all_configs_but;
use crate::process_runner::ProcessRunner;
use crate::transcript::{ProcessFiles, TurnFiles};
use crate::worker::TERM_GRACE;
use raymond_model::turn::TurnId;

/// The longest time to wait for the last processes of a run to end before they are killed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The time that a process of an earlier raymond has to end by itself.
const ORPHAN_END_TIMEOUT: Duration = Duration::from_secs(5);

impl ProcessRunner {
    /// Ends every process that bears the run's mark, except those of the turns to `keep`;
    /// returns their number.
    pub async fn sweep(&self, keep: &[TurnId]) -> usize {
        if keep.is_empty() {
            self.pool.drain().into_iter().for_each(|worker| self.retire(worker));
            let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.pool.empty()).await;
        }
        let keep: Vec<String> =
            keep.iter().map(|turn| TurnFiles::of(&self.steps, turn).place().0).collect();
        let is_over = |process: &str| !keep.iter().any(|kept| kept == process);
        if self.is_resumed {
            self.wait_for_orphans(is_over).await;
        }
        // The first sweep looks for what an earlier raymond has left, maybe one of a run that was removed.
        let is_first = !self.has_swept.replace(true);
        let ended = if is_first || self.is_resumed || !subreaper::has_no_descendants() {
            orphans::sweep(&self.marker, is_over).await
        } else {
            0
        };
        self.groups.end_all_but(&self.groups_of(&keep).await).await;
        if keep.is_empty() {
            subreaper::end_all(&self.marker).await;
        }
        remove_all_configs_but(&self.steps, &keep);
        if self.is_resumed {
            captured_output::cut_back_all(&self.steps);
        }
        ended
    }

    /// Gives Claude Code processes that an earlier raymond left behind time to end. They have reached the end of their
    /// input, and may still run the hooks of a session's end. A process that does not end by itself is asked to.
    async fn wait_for_orphans(&self, is_over: impl Fn(&str) -> bool) {
        let marker = self.marker.clone();
        let mut found = spawn_blocking(move || orphans::find(&marker)).await.unwrap_or_default();
        found.retain(|orphan| {
            let stream = || ProcessFiles::named(&self.steps, &orphan.process).stream;
            orphan.leads && is_over(&orphan.process) && orphans::writes_to(orphan, &stream())
        });
        if !orphans::end_within(&found, ORPHAN_END_TIMEOUT).await {
            found.iter().filter(|orphan| orphans::is_alive(orphan)).for_each(orphans::terminate);
            orphans::end_within(&found, TERM_GRACE).await;
        }
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
}
