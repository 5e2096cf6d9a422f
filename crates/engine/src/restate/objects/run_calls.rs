//! The calls of the object of a run, and its answers.

use serde::{Deserialize, Serialize};

use crate::shared_log::{HostClaim, HostReply, HostRequest, Withdrawal};

/// A command, with a content that is usually text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CarriedCommand {
    pub(crate) name: String,
    pub(crate) content: CarriedContent,
}

/// A content: as text if it is some, since bytes in JSON take four times the room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CarriedContent {
    Text(String),
    Bytes(Vec<u8>),
}

impl CarriedContent {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes(bytes.to_vec()),
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// A request as it is carried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CarriedRequest {
    pub(crate) key: String,
    pub(crate) host: String,
    pub(crate) host_epoch: u64,
    pub(crate) body: String,
}

impl From<&HostRequest> for CarriedRequest {
    fn from(request: &HostRequest) -> Self {
        Self {
            key: request.key.clone(),
            host: request.host.as_str().to_owned(),
            host_epoch: request.host_epoch.0,
            body: request.body.clone(),
        }
    }
}

/// The number of a sending, or of a call that has requests forgotten, among those of the process that makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SenderNumber {
    pub(crate) sender: String,
    pub(crate) number: u64,
}

/// The news that somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunTopic {
    Mail,
    Lines,
}

/// The longest time that a wait takes on the server. Callers that wait longer ask again.
pub(crate) const LONGEST_WAIT_MS: u64 = 20_000;

/// A wait for more than was seen. The answer is the number of the last news, or what was seen if the time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WaitCall {
    /// For a run; a host has only mail.
    pub(crate) topic: RunTopic,
    pub(crate) seen: u64,
    pub(crate) longest_ms: u64,
}

/// A call that may change a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunCall {
    Create {
        terms: String,
        holder: String,
        lease_ms: u64,
        lines: Vec<String>,
    },
    Claim {
        holder: String,
        lease_ms: u64,
    },
    /// The time of a lease is over, unless it was renewed.
    RunOut {
        lease: u64,
    },
    /// A call of the supervisor, which counts only with the newest lease.
    Leased {
        epoch: u64,
        deed: LeasedDeed,
    },
    /// Calls of a host for its own requests.
    Requests {
        by: HostClaim,
        received: Vec<String>,
        is_first: bool,
        limit: usize,
    },
    Begin {
        by: HostClaim,
        keys: Vec<String>,
    },
    Reply {
        by: HostClaim,
        replies: Vec<HostReply>,
    },
    /// The epochs of a host before the oldest valid one are over.
    Fence {
        host: String,
        oldest_valid: u64,
    },
    LeaveCommand {
        command: CarriedCommand,
    },
    /// Appends to the log of the changes of facts, which is not a run.
    AppendFact {
        change: FactChangeCall,
    },
    /// Calls of people who look at the run.
    Ask {
        question: CarriedRequest,
    },
    EndQuestion {
        key: String,
    },
    /// Notes a waiter for more than was seen.
    Watch {
        awakeable: String,
        topic: RunTopic,
        seen: u64,
    },
}

/// Something that only the newest supervisor may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LeasedDeed {
    Renew {
        lease_ms: u64,
    },
    Release {
        has_ended: bool,
    },
    Append {
        first: u64,
        lines: Vec<String>,
    },
    SetTerms {
        terms: String,
    },
    RemoveCommand {
        name: String,
    },
    Send {
        requests: Vec<CarriedRequest>,
        by: SenderNumber,
        /// The sender has sent one of them before.
        is_again: bool,
    },
    Sent,
    Withdraw {
        key: String,
    },
    Replies {
        received: Vec<String>,
        limit: usize,
    },
    Forget {
        keys: Vec<String>,
        by: SenderNumber,
    },
    ForgetAll {
        by: SenderNumber,
    },
    /// A step changes a fact. The lease is judged here; the change is made by the log of facts, before the run does
    /// anything else.
    ChangeFact {
        change: FactChangeCall,
    },
}

/// A change of facts, and the number of the change that it follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FactChangeCall {
    pub(crate) after: u64,
    pub(crate) text: String,
}

/// A question about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunLook {
    Lines { after: u64, limit: usize },
    Terms,
    Commands,
    Begun,
    Summary,
    QuestionReply { key: String },
}

/// A request for its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenRequest {
    pub(crate) key: String,
    pub(crate) body: String,
}

/// The answer of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunAnswer {
    Done,
    Epoch(u64),
    NoSuchRun,
    RunExists,
    Supervised {
        holder: String,
    },
    TakenOver,
    /// The epoch of the host is over.
    Fenced,
    /// Another change of facts has the place.
    Crossed,
    /// The call does not fit to the content of the object.
    Unfit {
        why: String,
    },
    Lines {
        lines: Vec<String>,
        last: u64,
    },
    Terms(String),
    Commands(Vec<CarriedCommand>),
    Keys(Vec<String>),
    Fate(Withdrawal),
    Requests(Vec<OpenRequest>),
    Begun(Vec<bool>),
    Replies(Vec<HostReply>),
    QuestionReply(Option<String>),
    Summary {
        last: u64,
        holder: Option<String>,
        has_ended: bool,
        is_abandoned: bool,
    },
}
