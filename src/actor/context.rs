//! The context that all agents of a run share, and the clock of this process.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use actix::Recipient;
use serde_json::{Map, Value};

use crate::actor::observer::{
    ActivityDone, AgentDown, ApiThrottled, ApprovalRequested, MessageRead, PluginInterceptor,
    TaskDone, TurnReported,
};
use crate::actor::registry::AgentRegistry;
use crate::actor::runner::{ActivityExecutor, StepRunner};
use crate::domain::id::Folder;
use crate::domain::money::Usd;
use crate::domain::settings::ForkSettings;
use crate::domain::time::{Timestamp, millis_of};
use crate::domain::turn::{FailureCause, TurnFailure};
use crate::domain::widening::PermissionCeiling;
use crate::fault::clock_shift;
use crate::language::prompt::step::UnfilledPlaceholder;
use crate::language::resume::workflow_cache::WorkflowCache;
use crate::language::source::WorkflowSource;

/// The surroundings of an agent.
pub struct RunContext {
    /// The permissions that no state may exceed.
    pub ceiling: PermissionCeiling,
    /// The workflow's files.
    pub source: Arc<dyn WorkflowSource>,
    /// The runner that answers turns.
    pub runner: Rc<dyn StepRunner>,
    /// The executor of activities.
    pub performer: Rc<dyn ActivityExecutor>,
    /// The files of states that have been read.
    pub workflows: WorkflowCache,
    /// The built-in variables of graphs: `PWD`, `HOME`.
    pub builtins: Map<String, Value>,
    /// The live picture.
    pub registry: Arc<AgentRegistry>,
    /// The plug-ins that may change decisions.
    pub interceptors: Vec<PluginInterceptor>,
    /// The directory of the files with the results of joins.
    pub results: PathBuf,
    /// The settings of forks.
    pub forking: ForkSettings,
    /// The cost of the run so far, for the plug-ins that are asked.
    pub total_cost: Cell<Usd>,
    /// The supervisor that agents report to.
    pub supervisor: SupervisorHandle,
    /// The unfilled placeholders that were warned of already.
    pub warned: RefCell<HashSet<UnfilledPlaceholder>>,
}

impl RunContext {
    /// Returns the files an agent sees: the workflow's, or those of a folder below.
    ///
    /// # Errors
    /// The failure of an agent whose folder is gone.
    pub(super) fn source_of(
        &self,
        folder: Option<&Folder>,
    ) -> Result<Arc<dyn WorkflowSource>, TurnFailure> {
        let Some(folder) = folder else { return Ok(Arc::clone(&self.source)) };
        let source = self.source.within(folder);
        source.map_err(|error| TurnFailure::new(FailureCause::Workflow, error.to_string()))
    }

    /// Returns the unfilled placeholders that were not warned of yet.
    pub(super) fn take_unwarned(
        &self,
        unfilled: Vec<UnfilledPlaceholder>,
    ) -> Vec<UnfilledPlaceholder> {
        let mut warned = self.warned.borrow_mut();
        unfilled.into_iter().filter(|placeholder| warned.insert(placeholder.clone())).collect()
    }
}

/// Runs an interpreter or a judge; a panic in it is the failure of this agent alone.
pub(super) fn contained<T>(
    work: impl FnOnce() -> Result<T, TurnFailure>,
) -> Result<T, TurnFailure> {
    // What the closure reads is not changed by it, so nothing is left half done.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(TurnFailure::new(FailureCause::Panic, "the runtime failed while it served this agent"))
    })
}

/// The supervisor as an agent sees it: the messages that it takes.
pub struct SupervisorHandle {
    /// Takes reports.
    pub reports: Recipient<TurnReported>,
    /// Takes the results of tasks.
    pub tasks: Recipient<TaskDone>,
    /// Learns the outcome of activities.
    pub activities: Recipient<ActivityDone>,
    /// Learns of tool calls that need approval.
    pub approvals: Recipient<ApprovalRequested>,
    /// Learns of messages that running turns have read.
    pub read_messages: Recipient<MessageRead>,
    /// Learns of throttling by the API.
    pub throttles: Recipient<ApiThrottled>,
    /// Learns of actors that died.
    pub deaths: Recipient<AgentDown>,
}

// The one place that asks for the time.
//
// Waits are kept as points in time, because they outlive the process. If the machine's clock is set back during a
// wait, the wait must not become longer. So the time of this process never goes back: it is the wall clock's
// time, or the time that a monotonic clock counts if that is later. A clock that is set forward, or that ran
// while the machine slept, is believed at once. Only times of day, as the reset of a usage limit, go by the wall
// clock.

/// A clock that never goes back, made of a wall clock and a monotonic one.
#[derive(Debug, Default)]
struct SteadyClock {
    /// The latest that the wall clock has said the process began, in milliseconds.
    began: AtomicU64,
}

static CLOCK: LazyLock<(Instant, SteadyClock)> =
    LazyLock::new(|| (Instant::now(), SteadyClock::default()));

impl SteadyClock {
    /// Returns the time, computed from the wall clock and the milliseconds that have passed.
    fn read(&self, wall: Timestamp, passed: u64) -> Timestamp {
        let began = wall.0.saturating_sub(passed);
        let latest = self.began.fetch_max(began, Ordering::Relaxed).max(began);
        Timestamp(latest.saturating_add(passed))
    }
}

/// Returns the time now, which never goes back while this process lives.
pub fn now() -> Timestamp {
    let (start, clock) = &*CLOCK;
    clock.read(wall_clock_now(), millis_of(start.elapsed()))
}

/// Returns the time of the wall clock, which may be set back.
pub fn wall_clock_now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(millis_of(since).saturating_add_signed(clock_shift()))
}

#[cfg(test)]
mod clock_tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    #[test]
    fn backward_clock_step_does_not_lengthen_wait() {
        let clock = SteadyClock::default();
        let read = |wall, passed| clock.read(Timestamp(wall), passed).0;
        assert_eq!(read(10 * HOUR, 0), 10 * HOUR);
        let until = 10 * HOUR + 5_000;
        assert!(read(9 * HOUR + 4_000, 4_000) < until, "an hour back, and not yet over");
        assert_eq!(read(9 * HOUR + 5_000, 5_000), until);
        assert_eq!(read(9 * HOUR + 5_000, 5_000), until, "however often it is asked");
        let next = until + 1_000;
        assert!(read(9 * HOUR + 5_999, 5_999) < next, "nor any later wait shorter");
        assert_eq!(read(9 * HOUR + 6_000, 6_000), next);
    }

    #[test]
    fn forward_clock_step_is_followed() {
        let clock = SteadyClock::default();
        let read = |wall, passed| clock.read(Timestamp(wall), passed).0;
        assert_eq!(read(HOUR, 0), HOUR);
        assert_eq!(read(9 * HOUR, 1_000), 9 * HOUR, "as after the machine has slept");
        assert_eq!(read(9 * HOUR + 1_000, 2_000), 9 * HOUR + 1_000);
        assert_eq!(read(2 * HOUR, 3_000), 9 * HOUR + 2_000, "and goes on from there");
    }

    #[test]
    fn now_defaults_to_wall_clock() {
        let before = wall_clock_now();
        assert!(now() >= before);
    }
}
