//! The times of a run's turns, counted as they end. To read them again at the end of a long run takes seconds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::{Actor, Context, Handler};

use super::summary::TurnTimes;
use crate::actor::message::{FinishPublishing, Published};
use crate::domain::run::Run;

/// The times that are counted, for whoever sums them up at the end.
#[derive(Debug, Default, Clone)]
pub(super) struct CountedTimes(Arc<Mutex<TimesCount>>);

/// The times, and whether those of all turns are in them.
#[derive(Debug, Default)]
struct TimesCount {
    times: TurnTimes,
    is_complete: bool,
}

impl CountedTimes {
    /// Returns the plug-in that counts the times of a run, and where it counts them. `None` if turns have ended before: it would
    /// not see those.
    pub(super) fn of_new_run(run: &Run) -> Option<(TurnTimesPlugin, Self)> {
        // The first record tells that the run was started.
        (run.seq <= 1).then(|| {
            let counted = Self::default();
            (TurnTimesPlugin(counted.clone()), counted)
        })
    }

    /// Returns the times; `None` if the plug-in has not seen all records.
    pub(super) fn take(&self) -> Option<TurnTimes> {
        let TimesCount { times, is_complete } = std::mem::take(&mut *self.lock());
        is_complete.then_some(times)
    }

    fn lock(&self) -> MutexGuard<'_, TimesCount> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the times of a run's turns.
pub(super) struct TurnTimesPlugin(CountedTimes);

impl Actor for TurnTimesPlugin {
    type Context = Context<Self>;
}

impl Handler<Published> for TurnTimesPlugin {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        self.0.lock().times.count(&published.record.event);
    }
}

impl Handler<FinishPublishing> for TurnTimesPlugin {
    type Result = ();

    fn handle(&mut self, _: FinishPublishing, _: &mut Self::Context) {
        self.0.lock().is_complete = true;
    }
}
