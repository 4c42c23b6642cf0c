//! What Linux tells of a process: whose child it is, its CPU time, its memory.

use std::fs;

/// Ticks a second: what Linux tells programs, whatever it counts in itself.
pub const TICKS: f64 = 100.0;

/// The parent of a process, and the seconds of CPU that it has used with all threads that it had,
/// in ticks of 10 ms.
pub fn times(number: u32) -> Option<(u32, f64)> {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name, in brackets, may have anything in it.
    let fields: Vec<_> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((fields.get(1)?.parse().ok()?, (ticks(11)? + ticks(12)?) / TICKS))
}

/// Memory of a process, in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What is resident of it.
    pub resident: u64,
    /// What of that is backed by no file: heaps and stacks.
    pub anonymous: u64,
}

/// The memory that a process has now.
pub fn memory(number: u32) -> Option<Memory> {
    memory_in(&fs::read_to_string(format!("/proc/{number}/status")).ok()?)
}

fn memory_in(status: &str) -> Option<Memory> {
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    Some(Memory { resident: of("VmRSS:")?, anonymous: of("RssAnon:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_parent_and_memory() {
        let number = std::process::id();
        assert_eq!(times(number).unwrap().0, std::os::unix::process::parent_id());
        let memory = memory(number).unwrap();
        assert!(memory.anonymous > 0 && memory.resident > memory.anonymous, "{memory:?}");
        assert_eq!(
            memory_in("VmRSS:\t     12 kB\nRssAnon:\t 7 kB\n"),
            Some(Memory { resident: 12, anonymous: 7 })
        );
        assert_eq!(memory_in("VmSize:\t     12 kB\n"), None);
    }
}
