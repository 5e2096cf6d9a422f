//! Those who wait for news of an object.

use serde::{Deserialize, Serialize};

use crate::engine::restate::objects::run_calls::RunTopic;
use crate::engine::restate::objects::state::ObjectEffect;
use crate::engine::restate::objects::state::ObjectState;

/// The most that are kept. The oldest is woken to look for itself: usually it has gone long ago.
const MOST: usize = 32;

/// The count of news, and the awakeables of those who have seen all.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NewsWaiters {
    /// The number of the last news.
    #[serde(default)]
    pub(super) news: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    awakeables: Vec<String>,
}

impl NewsWaiters {
    /// Notes somebody who waits, or wakes them if there are news already.
    pub(super) fn watch(&mut self, awakeable: &str, seen: u64, state: &mut ObjectState<'_>) {
        if self.news != seen {
            state.effect(ObjectEffect::Wake(awakeable.to_owned(), self.news));
            return;
        }
        self.awakeables.push(awakeable.to_owned());
        if self.awakeables.len() > MOST {
            state.effect(ObjectEffect::Wake(self.awakeables.remove(0), self.news));
        }
    }

    /// Wakes all, since there are news.
    pub(super) fn tell(&mut self, news: u64, state: &mut ObjectState<'_>) {
        self.news = news;
        for awakeable in std::mem::take(&mut self.awakeables) {
            state.effect(ObjectEffect::Wake(awakeable, news));
        }
    }
}

/// The longest time that a wait takes on the server. Whoever waits longer asks again.
pub(in crate::engine::restate) const LONGEST_WAIT_MS: u64 = 20_000;

/// A wait for more than was seen. The answer is the number of the last news, or what was seen if the time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::engine::restate) struct WaitCall {
    /// For a run; a host has only mail.
    pub(in crate::engine::restate) topic: RunTopic,
    pub(in crate::engine::restate) seen: u64,
    pub(in crate::engine::restate) longest_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::restate::objects::state::LoadedValues;

    #[test]
    fn waiters_are_woken_once_and_the_oldest_gives_way() {
        let loaded = LoadedValues::new();
        let mut state = ObjectState::new(&loaded);
        let mut waiters = NewsWaiters::default();
        waiters.watch("late", 7, &mut state);
        for number in 0..=MOST {
            waiters.watch(&number.to_string(), 0, &mut state);
        }
        let woken = |state: ObjectState<'_>| state.into_changes().effects;
        let wake = |name: &str| ObjectEffect::Wake(name.to_owned(), 0);
        assert_eq!(woken(state), [wake("late"), wake("0")]);
        let mut state = ObjectState::new(&loaded);
        waiters.tell(1, &mut state);
        waiters.tell(2, &mut state);
        assert_eq!(woken(state).len(), MOST);
        assert_eq!(waiters, NewsWaiters { news: 2, awakeables: Vec::new() });
    }
}
