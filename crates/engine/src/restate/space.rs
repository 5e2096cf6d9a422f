//! The space of runs: commands, and contents by their checksum.
//!
//! A small content is stored as it is. Another one is stored in pieces, each in an object of its own, and then the list of
//! them, so that one that is there is whole.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::calls::{CalledHandler, LARGE_CALL_LIMIT};
use super::engine::RestateEngine;
use super::failure::{damaged, refused};
use super::objects::run_calls::{
    CarriedCommand, CarriedContent, LeasedDeed, RunAnswer, RunCall, RunLook,
};
use crate::connect::{RunSpace, SharedCommand, too_large};
use crate::restate::objects::shell::{CHANGE, CONTENT, LOOK};
use crate::shared_log::RunLease;
use crate::{Engine, EngineError};
use raymond_model::id::RunId;

/// The size of a piece, in bytes.
const PIECE: usize = 1_024 * 1_024;

/// The size up to which a content is small, in bytes.
const SMALL: usize = 64 * 1_024;

/// The first byte of a content that is stored as it is.
const WHOLE: u8 = 0;
/// The first byte of the list of the pieces of a content.
const LIST: u8 = 1;

/// The list of the pieces of a content.
#[derive(Debug, Serialize, Deserialize)]
struct ContentPieces {
    pieces: usize,
}

impl RunSpace for RestateEngine {
    fn leave_command(&self, run: &RunId, command: &SharedCommand) -> Result<(), EngineError> {
        let content = CarriedContent::of(&command.content);
        let command = CarriedCommand { name: command.name.clone(), content };
        let call = RunCall::LeaveCommand { command };
        self.run_within(run, &call, LARGE_CALL_LIMIT).map(drop)
    }

    fn commands(&self, run: &RunId) -> Result<Vec<SharedCommand>, EngineError> {
        let commands = match self.run_look(run, &RunLook::Commands)? {
            RunAnswer::Commands(commands) => commands,
            other => return Err(self.unexpected(&other)),
        };
        let carried = |CarriedCommand { name, content }| {
            let content = content.into_bytes();
            SharedCommand { name, content }
        };
        Ok(commands.into_iter().map(carried).collect())
    }

    fn remove_command(&self, lease: &RunLease, name: &str) -> Result<(), EngineError> {
        self.leased(lease, LeasedDeed::RemoveCommand { name: name.to_owned() }).map(drop)
    }

    fn put_blob(&self, sha256: &str, content: &[u8]) -> Result<(), EngineError> {
        if checksum(content) != sha256 {
            return Err(refused(
                self.address(),
                format!("`{sha256}` is not the checksum of the content"),
            ));
        }
        if content.len() <= SMALL {
            return self.put_piece(sha256, [&[WHOLE], content].concat());
        }
        // What is there already does not cross the network again.
        if self.piece(sha256)?.is_some() {
            return Ok(());
        }
        let pieces = content.chunks(PIECE);
        let list = ContentPieces { pieces: pieces.len() };
        for (number, piece) in pieces.enumerate() {
            self.put_piece(&format!("{sha256}.{number}"), piece.to_vec())?;
        }
        let list = serde_json::to_vec(&list)
            .map_err(|error| refused(self.address(), error.to_string()))?;
        self.put_piece(sha256, [&[LIST], &list[..]].concat())
    }

    fn blob(&self, sha256: &str, most: u64) -> Result<Option<Vec<u8>>, EngineError> {
        let Some(stored) = self.piece(sha256)? else { return Ok(None) };
        let content = match stored.split_first() {
            Some((&WHOLE, content)) => content.to_vec(),
            Some((&LIST, list)) => self.joined(sha256, list, most)?,
            // Objects of version 4 had the list alone.
            Some((b'{', _)) => self.joined(sha256, &stored, most)?,
            Some(_) | None => return Err(self.broken(sha256, "it is neither whole nor a list")),
        };
        if content.len() as u64 > most {
            return Err(self.broken(sha256, too_large(content.len() as u64, most)));
        }
        if checksum(&content) == sha256 {
            Ok(Some(content))
        } else {
            Err(self.broken(sha256, "it has another checksum"))
        }
    }
}

impl RestateEngine {
    /// Returns the pieces of a list, joined.
    fn joined(&self, sha256: &str, list: &[u8], most: u64) -> Result<Vec<u8>, EngineError> {
        let list: ContentPieces =
            serde_json::from_slice(list).map_err(|error| self.broken(sha256, error.to_string()))?;
        // All pieces but the last one have the same size.
        let least = list.pieces.saturating_sub(1).saturating_mul(PIECE) as u64;
        if least > most {
            return Err(self.broken(sha256, too_large(least, most)));
        }
        let mut content = Vec::new();
        for number in 0..list.pieces {
            let piece = self.piece(&format!("{sha256}.{number}"))?;
            let missing = || self.broken(sha256, format!("piece {number} is missing"));
            content.extend(piece.ok_or_else(missing)?);
            if content.len() as u64 > most {
                break;
            }
        }
        Ok(content)
    }

    fn broken(&self, sha256: &str, why: impl Into<String>) -> EngineError {
        damaged(self.address(), format!("the content {sha256}"), why.into())
    }

    fn put_piece(&self, key: &str, piece: Vec<u8>) -> Result<(), EngineError> {
        let called = CalledHandler { service: CONTENT, key, handler: CHANGE };
        self.caller.handle.block_on(self.caller.send(called, piece, LARGE_CALL_LIMIT)).map(drop)
    }

    fn piece(&self, key: &str) -> Result<Option<Vec<u8>>, EngineError> {
        let called = CalledHandler { service: CONTENT, key, handler: LOOK };
        let asked = self.caller.send(called, Vec::new(), LARGE_CALL_LIMIT);
        let answer = self.caller.handle.block_on(asked)?;
        Ok(answer
            .split_first()
            .filter(|(is_there, _)| **is_there == 1)
            .map(|(_, piece)| piece.to_vec()))
    }
}

fn checksum(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::new(), |mut digits, byte| {
        // Writing to a text never fails.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}
