//! The name of a new command in the inbox of a run.

use std::path::Path;

use uuid::Uuid;

use crate::actor::context::now;
use crate::domain::time::Timestamp;
use crate::proof::ProofKey;
use crate::store::inbox;

/// The digits of the time in a name.
const TIME_DIGITS: usize = 13;

/// Returns a name that no other command has. Commands are taken in the order of their names, so it begins with the
/// time.
pub fn command_name() -> String {
    named_at(now())
}

/// The names of several commands that are put into an inbox, each after those before it.
#[derive(Debug)]
pub struct CommandNames {
    last: Option<Timestamp>,
}

impl CommandNames {
    /// Returns names after those of the commands that lie in an inbox, also if the clock was set back since they were
    /// given.
    pub fn after(inbox: &Path, key: &ProofKey) -> Self {
        let waiting = inbox::list(inbox, Some(key)).unwrap_or_default();
        // What has no proof says nothing about the time.
        let given = waiting.iter().filter(|entry| entry.command.is_some());
        Self { last: given.filter_map(|entry| given_at(&entry.name)).max() }
    }

    /// Returns the next name.
    pub fn next_name(&mut self) -> String {
        let time = self.last.map_or_else(now, |last| now().max(Timestamp(last.0 + 1)));
        self.last = Some(time);
        named_at(time)
    }
}

/// Returns a name after those of the commands that lie in an inbox.
pub fn next_command_name(inbox: &Path, key: &ProofKey) -> String {
    CommandNames::after(inbox, key).next_name()
}

fn named_at(time: Timestamp) -> String {
    format!("{:0TIME_DIGITS$}-{}", time.0, Uuid::new_v4().simple())
}

/// Returns the time at which a command was given; `None` if its name has none.
pub fn given_at(name: &str) -> Option<Timestamp> {
    let time = name.get(..TIME_DIGITS)?;
    time.parse().ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::RunCommand;

    #[test]
    fn command_comes_after_those_that_a_faster_clock_has_named() {
        let (folder, key) = (tempfile::tempdir().expect("a folder"), ProofKey::new("k"));
        let inbox = folder.path();
        let tomorrow = named_at(Timestamp(now().0 + 86_400_000));
        inbox::put(inbox, &tomorrow, &RunCommand::Stop, &key).expect("put");
        let planted = named_at(Timestamp(9_999_999_999_998));
        inbox::put(inbox, &planted, &RunCommand::Stop, &ProofKey::new("other")).expect("put");
        let mut names = CommandNames::after(inbox, &key);
        let several: Vec<String> = (0..100).map(|_| names.next_name()).collect();
        assert!(tomorrow < several[0] && several.is_sorted() && several[99] < planted);
        let next = next_command_name(inbox, &key);
        assert!(tomorrow < next && next < planted, "{tomorrow} {next}");
        assert!(next_command_name(&inbox.join("none"), &key) < tomorrow);
    }
}
