//! The mail that waiters were told of, so that they do not wait in circles.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The mail that receivers were told of, by their channels.
#[derive(Debug, Default)]
pub(super) struct ToldMail(Mutex<HashMap<String, String>>);

impl ToldMail {
    /// Notes that a receiver is told of its mail; returns whether that is other mail than the last time.
    pub(super) fn is_other(&self, channel: &str, mail: &str) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.insert(channel.to_owned(), mail.to_owned()).is_none_or(|before| before != mail)
    }
}
