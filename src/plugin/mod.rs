//! The actors that come with raymond: most show or store events, and one represents an external plug-in.
//!
//! Most of them never change a run. The actor of an external plug-in may change decisions.
//!
//! Each receives every record after it is committed. They run on a separate thread, so a slow terminal or disk delays
//! nothing else.

pub mod console;
pub mod debug;
pub mod external;
pub mod fan_out;
pub mod notify;
pub mod schema;
pub mod screen;
pub mod sentence;
pub mod styled;
pub mod telemetry;
pub mod terminal;
