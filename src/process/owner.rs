//! Ties this process to the life of the one that started it, if that asks for it.
//!
//! `raymond test` starts a raymond for each case. If it is killed, it cannot end them any more, so the system tells them
//! to end, as an interrupt would. Elsewhere than on Linux they go on to their own end.

/// The variable with the number of the process that this one is not to outlive.
pub const VARIABLE: &str = "RAYMOND_OWNER";

/// Has the system terminate this process when its parent ends, if that is its owner. Returns whether the owner is still
/// there: it may have been killed while this process was being started.
pub fn follow(owner: Option<&str>) -> bool {
    let Some(owner) = owner.and_then(|owner| owner.parse::<i32>().ok()) else { return true };
    #[cfg(target_os = "linux")]
    if is_parent(owner) {
        use rustix::process::{Signal, set_parent_process_death_signal};
        // Without it the process only ends by itself.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
        return is_parent(owner);
    }
    // A process further down inherits the variable, too. It has another parent, who is told.
    is_alive(owner)
}

/// Returns whether a process is the parent of this one.
#[cfg(target_os = "linux")]
fn is_parent(pid: i32) -> bool {
    rustix::process::getppid().is_some_and(|parent| parent.as_raw_nonzero().get() == pid)
}

/// Returns whether a process is there, as far as the system tells; one that has only not been waited for is not.
fn is_alive(pid: i32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" Z")),
        Err(_) => !std::path::Path::new("/proc/self/stat").exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_that_is_gone_is_noticed() {
        let own = std::process::id().to_string();
        assert!(follow(None) && follow(Some("no number")) && follow(Some(&own)));
        let mut child = std::process::Command::new("true").spawn().expect("a process");
        child.wait().expect("its end");
        assert!(!follow(Some(&child.id().to_string())));
    }
}
