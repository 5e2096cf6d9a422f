//! How people write a span of time: `200ms`, `30s`, `1.5m`, `1h`.

pub use crate::domain::time::millis;
