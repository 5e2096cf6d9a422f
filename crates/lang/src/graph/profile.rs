//! The strictness of reading a graph.

/// The strictness of reading a graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GraphProfile {
    /// Deviations that graphs in use have are only warnings.
    #[default]
    Lenient,
    /// All rules hold.
    Seed,
}
