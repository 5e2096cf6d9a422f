//! Reads the machine's resources: processors, and available memory and disk space; and its clock.
//!
//! If processes are confined to a part of the machine's memory, as in a container, that part counts. An unknown amount
//! limits nothing.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};

use raymond_model::capacity::{self, HostMemory};
use raymond_model::settings::MaxProcs;
use raymond_model::time::{Timestamp, millis_of};
use raymond_store::fault::memory_table;

/// The time for which a reading of the memory is reused.
const READING_LIFETIME: Duration = Duration::from_millis(500);

/// The directory in which a control group reports its memory.
const GROUP: &str = "/sys/fs/cgroup";

/// The number of files that a run with one turn at a time opens, with room to spare.
pub const LEAST_OPEN_FILES: u64 = 64;

/// The approximate length of a line of a stream, in bytes.
const A_LINE: u64 = 4096;

/// Reads the memory, at most twice a second.
#[derive(Debug, Default)]
pub struct MemoryProbe {
    seen: Cell<Option<(Instant, Option<HostMemory>)>>,
}

impl MemoryProbe {
    /// Returns the memory as it was at most half a second ago.
    pub fn memory(&self) -> Option<HostMemory> {
        self.read().0
    }

    /// Returns the memory, and true if it was read just now.
    pub fn read(&self) -> (Option<HostMemory>, bool) {
        if let Some((at, memory)) = self.seen.get()
            && at.elapsed() < READING_LIFETIME
        {
            return (memory, false);
        }
        let memory = memory();
        self.seen.set(Some((Instant::now(), memory)));
        (memory, true)
    }
}

/// Returns the number of processors that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the number of turns that may run at the same time on this machine.
pub fn turn_capacity(max_procs: MaxProcs, memory: Option<HostMemory>) -> usize {
    match max_procs {
        MaxProcs::Auto => capacity::processes(cores(), memory),
        MaxProcs::Count(count) => count.max(1),
    }
}

/// Returns a time of the system in milliseconds since 1970.
pub fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(millis_of(since))
}

/// Returns the number of files that this process may open at the same time, if that is less than a run needs.
pub fn too_few_open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current.filter(|limit| *limit < LEAST_OPEN_FILES)
}

/// Returns the memory of the machine, or of the control group if that has less.
pub fn memory() -> Option<HostMemory> {
    let machine = machine(&std::fs::read_to_string(memory_table()).ok()?)?;
    let group = group(Path::new(GROUP));
    Some(group.filter(|group| group.available < machine.available).unwrap_or(machine))
}

/// Reads the system's table.
fn machine(text: &str) -> Option<HostMemory> {
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some(HostMemory { total: kib("MemTotal")? * 1024, available: kib("MemAvailable")? * 1024 })
}

/// Reads a control group's limit and use. Memory of cached files counts as free.
fn group(dir: &Path) -> Option<HostMemory> {
    let number = |file: &str| -> Option<u64> {
        std::fs::read_to_string(dir.join(file)).ok()?.trim().parse().ok()
    };
    let total = number("memory.max")?;
    let cached = std::fs::read_to_string(dir.join("memory.stat")).ok().and_then(|stat| {
        stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok())
    });
    let used = number("memory.current")?.saturating_sub(cached.unwrap_or(0));
    Some(HostMemory { total, available: total.saturating_sub(used) })
}

/// Returns whether the disk of a file has no room for another line; false if that is not known.
pub fn is_disk_full(file: &Path) -> bool {
    statvfs(file).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < A_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_total_and_available_are_parsed() {
        let text = "MemTotal:       24683520 kB\nMemFree:  1 kB\nMemAvailable:    2048 kB\n";
        let memory = HostMemory { total: 24_683_520 * 1024, available: 2048 * 1024 };
        assert_eq!(machine(text), Some(memory));
        assert_eq!(machine("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn limited_cgroup_memory_excludes_inactive_cache() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |file: &str, text: &str| {
            std::fs::write(dir.path().join(file), text).expect("written");
        };
        assert_eq!(group(dir.path()), None);
        write("memory.current", "700\n");
        write("memory.stat", "anon 5\ninactive_file 200\n");
        write("memory.max", "max\n");
        assert_eq!(group(dir.path()), None, "without a limit the machine counts");
        write("memory.max", "1000\n");
        assert_eq!(group(dir.path()), Some(HostMemory { total: 1000, available: 500 }));
    }
}
