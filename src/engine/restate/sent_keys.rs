//! The requests that this process has sent lately, so that it can say which sending is not the first one.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};

use super::objects::run_calls::SenderNumber;

/// The number of keys after which the older ones are not known any more. The objects know fewer.
const MOST: usize = 16_384;

/// The hashes of the keys. Two keys with the same one cost no more than a longer look.
#[derive(Debug, Default)]
struct KnownHashes {
    newer: HashSet<u64>,
    older: HashSet<u64>,
    number: u64,
}

/// The keys that were sent, and the name that the objects know this process by.
#[derive(Debug)]
pub(super) struct SentKeys {
    sender: String,
    hasher: RandomState,
    known: Mutex<KnownHashes>,
}

impl Default for SentKeys {
    fn default() -> Self {
        // Its seeds are random, so no other process has the name.
        let hasher = RandomState::new();
        let sender = format!("{:016x}", hasher.hash_one("sender"));
        Self { sender, hasher, known: Mutex::default() }
    }
}

impl SentKeys {
    /// Returns the number of a call that sends these keys, and whether one of them was sent before.
    pub(super) fn send<'k>(&self, keys: impl Iterator<Item = &'k str>) -> (SenderNumber, bool) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_again = false;
        for hash in keys.map(|key| self.hasher.hash_one(key)) {
            let is_new = known.newer.insert(hash);
            is_again |= !is_new || known.older.contains(&hash);
            if known.newer.len() >= MOST {
                known.older = std::mem::take(&mut known.newer);
            }
        }
        known.number += 1;
        (SenderNumber { sender: self.sender.clone(), number: known.number }, is_again)
    }

    /// Returns the number of a call that sends nothing.
    pub(super) fn number(&self) -> SenderNumber {
        self.send(std::iter::empty()).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_known_for_as_many_others_as_the_objects_know() {
        let sent = SentKeys::default();
        let is_again = |key: &str| sent.send([key].into_iter()).1;
        assert_eq!((is_again("a"), is_again("b"), is_again("a")), (false, false, true));
        for number in 0..MOST {
            assert!(!is_again(&number.to_string()));
        }
        assert!(is_again("b"));
        assert_eq!(sent.number().number, 4 + MOST as u64 + 1);
        assert_eq!(sent.number().sender, sent.number().sender);
    }
}
