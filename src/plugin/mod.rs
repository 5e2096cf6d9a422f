//! The actors that come with raymond. Those that show or keep the events only observe: they never change a run.
//! One speaks for a plug-in that is a program, which may have a say.
//!
//! Each is told of every record after it is committed. They live on a thread of their own, so a slow terminal or
//! disk delays nothing else.

pub mod console;
pub mod debug;
pub mod external;
pub mod extract;
pub mod lines;
pub mod notify;
pub mod schema;
pub mod screen;
pub mod sentence;
pub mod telemetry;
pub mod terminal;
