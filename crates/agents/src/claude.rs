//! Claude Code: its command line, its messages, its stream, its sessions, and the words of its errors.
//!
//! What other agent programs do differently is here, and nowhere else.

pub mod arguments;
pub(crate) mod classify;
pub(crate) mod events;
pub mod message;
pub mod model_times;
pub(crate) mod partial_message_removal;
pub mod program;
pub mod session_files;
pub(crate) mod session_recap;
pub mod startup;
pub mod stream;
pub mod turn_transcript;
pub(crate) mod usage_limit;
