//! The machine, played on small programs.
