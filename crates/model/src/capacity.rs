//! The number of Claude Code processes a machine carries: by its cores and its free memory.
//!
//! The rule is measured. A process takes 150 to 215 MB, or 300 MB at its peak. It takes 0.8 to 1.3 seconds of processor
//! time to start and run its first turn (1.3 when many start at once), 0.03 for a further turn, and next to nothing
//! while it waits for the model. With turns of twenty seconds and more, which is short for an agent, eight processes
//! that each start afresh keep half a core busy. The limit is therefore eight per core, but no more than fit into the
//! memory at 300 MB each, beside a reserve. Before each start the free memory must have room for one more.

/// The memory estimate of one process, in bytes.
pub const PROCESS_MEMORY_BYTES: u64 = 300 * MIB;

/// The number of processes per core.
pub const PER_CORE: usize = 8;

/// The maximum reserve, in bytes.
const LARGEST_RESERVE: u64 = 1024 * MIB;

const MIB: u64 = 1024 * 1024;

/// The memory of a machine, or of the part of it that this process may use, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostMemory {
    /// All of it.
    pub total: u64,
    /// The memory available without swapping.
    pub available: u64,
}

impl HostMemory {
    /// Returns the reserve for everything else: a tenth, at most a gibibyte.
    fn reserve(self) -> u64 {
        (self.total / 10).min(LARGEST_RESERVE)
    }

    /// Returns the number of further processes that fit into it beside the reserve.
    pub fn room(self) -> usize {
        processes_in(self.available.saturating_sub(self.reserve()))
    }

    /// Returns the number of processes that there is memory for, with those that run now.
    pub fn room_with(self, running: u32) -> u32 {
        u32::try_from(self.room()).unwrap_or(u32::MAX).saturating_add(running)
    }
}

/// Returns the number of processes that may live at the same time; at least one. Unknown memory is ignored.
///
/// The whole memory counts here: the free part changes, and is checked before each start.
pub fn processes(cores: usize, memory: Option<HostMemory>) -> usize {
    let by_cores = cores.max(1).saturating_mul(PER_CORE);
    let by_memory = memory
        .map_or(usize::MAX, |memory| processes_in(memory.total.saturating_sub(memory.reserve())));
    by_cores.min(by_memory).max(1)
}

fn processes_in(bytes: u64) -> usize {
    usize::try_from(bytes / PROCESS_MEMORY_BYTES).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1024 * MIB;

    fn memory(total: u64, available: u64) -> HostMemory {
        HostMemory { total, available }
    }

    #[test]
    fn scarcer_of_cores_and_memory_limits_process_count() {
        let table = [
            (2, Some(memory(24 * GIB, 23 * GIB)), 16),
            (16, Some(memory(64 * GIB, 60 * GIB)), 128),
            (16, Some(memory(16 * GIB, 8 * GIB)), 51),
            (4, Some(memory(4 * GIB, 2 * GIB)), 12),
            (1, Some(memory(GIB, 300 * MIB)), 3),
            (8, Some(memory(300 * MIB, 300 * MIB)), 1),
            (0, None, 8),
        ];
        for (cores, memory, expected) in table {
            assert_eq!(processes(cores, memory), expected, "{cores} cores, {memory:?}");
        }
    }

    #[test]
    fn room_excludes_memory_reserve() {
        assert_eq!(memory(24 * GIB, 2 * GIB).room(), 3);
        assert_eq!(memory(24 * GIB, GIB + 299 * MIB).room(), 0);
        assert_eq!(memory(GIB, 403 * MIB).room(), 1);
        assert_eq!(memory(GIB, 400 * MIB).room(), 0);
        assert_eq!(memory(GIB, 0).room(), 0);
        assert_eq!(memory(24 * GIB, 2 * GIB).room_with(5), 8);
    }
}
