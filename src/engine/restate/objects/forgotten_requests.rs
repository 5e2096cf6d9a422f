//! The requests that were forgotten a while ago. A call that sends one, was cut off and comes late, finds its key taken.
//!
//! To look for each key would cost the server more than to send it. So the lists are read only for a sending that could
//! be late: one that its sender began before it last had something forgotten, one of another sender, and one with a key that
//! the sender knows to have sent before.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::run_calls::SenderNumber;
use super::state::{ObjectState, Undecided};

/// The fewest requests of a list that takes no more.
const LIST: usize = 256;
/// The most lists before the last one. They have the last 10,000 requests.
const MOST: u64 = 40;

/// A request that was forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ForgottenRequest {
    #[serde(rename = "k")]
    pub(super) key: String,
    #[serde(rename = "g", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) was_begun: bool,
}

/// The lists, and who had something forgotten last.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ForgottenRequests {
    first: u64,
    last: u64,
    by: Option<SenderNumber>,
}

fn list_key(number: u64) -> String {
    format!("forgotten_requests/{number}")
}

impl ForgottenRequests {
    /// Adds requests, and removes those that were forgotten long ago.
    pub(super) fn add(
        &mut self,
        by: &SenderNumber,
        forgotten: Vec<ForgottenRequest>,
        state: &mut ObjectState<'_>,
    ) -> Result<(), Undecided> {
        let is_later = |by: &SenderNumber, last: &SenderNumber| {
            by.sender != last.sender || by.number > last.number
        };
        if self.by.as_ref().is_none_or(|last| is_later(by, last)) {
            self.by = Some(by.clone());
        }
        if forgotten.is_empty() {
            return Ok(());
        }
        let key = list_key(self.last);
        let mut list: Vec<ForgottenRequest> = state.get_or_default(&key)?;
        list.extend(forgotten);
        state.set(&key, &list)?;
        if list.len() >= LIST {
            self.last += 1;
        }
        while self.last - self.first > MOST {
            state.clear(&list_key(self.first));
            self.first += 1;
        }
        Ok(())
    }

    /// Returns whether a sending could have keys that were forgotten.
    pub(super) fn concerns(&self, sending: &SenderNumber) -> bool {
        self.by.as_ref().is_some_and(|by| by.sender != sending.sender || sending.number < by.number)
    }

    /// Returns all keys, and whether each had been begun.
    pub(super) fn all(&self, state: &ObjectState<'_>) -> Result<HashMap<String, bool>, Undecided> {
        state.need((self.first..=self.last).map(list_key))?;
        let mut all = HashMap::new();
        for number in self.first..=self.last {
            let list: Vec<ForgottenRequest> = state.get_or_default(&list_key(number))?;
            all.extend(list.into_iter().map(|one| (one.key, one.was_begun)));
        }
        Ok(all)
    }
}
