//! The permissions that a case can ask for.

/// What a setting permits, which only a person may do in a live run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CasePermission {
    /// Graphs fetch from an address that is not public.
    AllowAddress,
    /// States use a tool without being asked.
    AllowTools,
    /// Claude Code asks for less.
    PermissionMode,
}
