//! Those who are told of every record: a mailbox each, which can be full or gone.
//!
//! Telling never waits. A plug-in whose mailbox is full misses records, and learns with the next one
//! it is told how many; the journal has them all. What comes with raymond itself misses nothing.

use actix::Recipient;
use actix::prelude::SendError;

use super::message::Published;

/// Someone who is told of every record.
pub struct Observer {
    name: String,
    recipient: Recipient<Published>,
    kind: Kind,
    missed: u64,
    gone: bool,
}

/// What becomes of records that it has no room for, and of the run when it is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It comes with raymond: it is told everything, however long that takes.
    Own,
    /// It is a plug-in: it misses what it has no room for.
    PlugIn {
        /// Whether the run pauses when it is gone.
        required: bool,
    },
}

impl Observer {
    /// An observer of that name.
    #[must_use]
    pub fn new(name: impl Into<String>, recipient: Recipient<Published>, kind: Kind) -> Self {
        Self { name: name.into(), recipient, kind, missed: 0, gone: false }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells it of a record; gives whether the run may not go on because of it.
    pub fn tell(&mut self, published: &Published) -> bool {
        if self.gone {
            return false;
        }
        let Kind::PlugIn { required } = self.kind else {
            self.recipient.do_send(published.clone());
            return false;
        };
        let published = Published { missed: self.missed, ..published.clone() };
        match self.recipient.try_send(published) {
            Ok(()) => {
                self.missed = 0;
                false
            }
            Err(SendError::Full(_)) => {
                if self.missed == 0 {
                    tracing::warn!(
                        "the plug-in {} does not keep up, and misses records until it does",
                        self.name
                    );
                }
                self.missed += 1;
                false
            }
            Err(SendError::Closed(_)) => {
                self.gone = true;
                if !required {
                    tracing::warn!(
                        "the plug-in {} has failed: the run goes on without it",
                        self.name
                    );
                }
                required
            }
        }
    }
}
