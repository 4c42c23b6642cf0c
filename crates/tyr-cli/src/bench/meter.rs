//! What a piece of work cost: wall time, CPU time, what else ran, memory, bytes to the disk.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Named figures of one measurement. A name ends in its unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(BTreeMap<String, f64>);

impl Figures {
    /// Sets a figure.
    pub fn set(&mut self, name: &str, value: f64) {
        self.0.insert(name.to_owned(), value);
    }

    /// A figure, if it was measured.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// As a JSON object.
    pub fn as_json(&self) -> Value {
        serde_json::json!(self)
    }
}

/// A moment, by all the clocks that are compared.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    wall: Instant,
    cpu: Duration,
    machine_cpu: Option<Duration>,
}

impl Moment {
    /// Now.
    pub fn now() -> Self {
        Self { wall: Instant::now(), cpu: process_cpu(), machine_cpu: machine_cpu() }
    }

    /// What was used since then.
    pub fn cost(self) -> Cost {
        self.cost_of(process_cpu().saturating_sub(self.cpu))
    }

    /// The same where what is measured is more than this process, and took so much CPU time.
    pub fn cost_of(self, cpu: Duration) -> Cost {
        let now = Self::now();
        let machine = match (self.machine_cpu, now.machine_cpu) {
            (Some(then), Some(now)) => Some(now.saturating_sub(then)),
            (None, _) | (_, None) => None,
        };
        Cost {
            wall: now.wall - self.wall,
            cpu,
            foreign: machine.map(|all| all.saturating_sub(cpu)),
        }
    }
}

/// What was used between two moments.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// By the clock on the wall.
    pub wall: Duration,
    /// By all threads of what is measured, in user space and in the kernel.
    pub cpu: Duration,
    /// By everything else on the machine, where the kernel tells.
    pub foreign: Option<Duration>,
}

impl Cost {
    /// Sets the rate and the CPU time of `count` operations, and what else ran.
    pub fn report(&self, count: u64, figures: &mut Figures) {
        figures.set("per_s", count as f64 / self.wall.as_secs_f64());
        figures.set("cpu_us", self.cpu.as_secs_f64() * 1e6 / count.max(1) as f64);
        self.report_foreign(figures);
    }

    /// Sets the share of the machine's CPUs that other processes took.
    pub fn report_foreign(&self, figures: &mut Figures) {
        if let Some(foreign) = self.foreign {
            let capacity = self.wall.as_secs_f64() * cpus() as f64;
            figures.set("foreign_cpu_percent", 100.0 * foreign.as_secs_f64() / capacity);
        }
    }
}

/// CPU time of this thread so far.
pub fn thread_cpu() -> Duration {
    read_clock(ClockId::ThreadCPUTime)
}

/// CPU time of this process so far.
pub fn process_cpu() -> Duration {
    read_clock(ClockId::ProcessCPUTime)
}

fn read_clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// CPUs that this process may use.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// CPU time of the whole machine so far. Linux tells it in hundredths of a second.
fn machine_cpu() -> Option<Duration> {
    parse_machine_cpu(&fs::read_to_string("/proc/stat").ok()?)
}

/// User, nice, system, irq, softirq and steal of the first line; not idle and iowait.
fn parse_machine_cpu(stat: &str) -> Option<Duration> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let busy: u64 = [0, 1, 2, 5, 6, 7].iter().filter_map(|index| ticks.get(*index)).sum();
    Some(Duration::from_millis(busy * 10))
}

/// A line of `/proc/self/status` in MiB: `VmRSS` is resident now, `VmHWM` at most so far.
pub fn memory_mib(name: &str) -> f64 {
    memory_mib_of(std::process::id(), name)
}

/// The same of another process.
pub fn memory_mib_of(process: u32, name: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    field(&status, name).map_or(f64::NAN, |kib| kib as f64 / 1024.0)
}

/// Bytes that this process has sent towards the disk so far.
pub fn bytes_written() -> Option<u64> {
    field(&fs::read_to_string("/proc/self/io").ok()?, "write_bytes")
}

/// Bytes that a process has had read from the disk so far.
pub fn bytes_read_of(process: u32) -> Option<u64> {
    field(&fs::read_to_string(format!("/proc/{process}/io")).ok()?, "read_bytes")
}

/// Has the system's cache forget all files below a folder. What was not written back is, first.
pub fn forget_cached(dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            forget_cached(&entry.path())?;
        } else if entry.file_type()?.is_file() {
            let file = fs::File::open(entry.path())?;
            file.sync_all()?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
    }
    Ok(())
}

/// Bytes that the device below a folder was sent so far, by whomever. What Linux counts of a
/// process are whole pieces of its cache, which may be longer than what was changed in them.
pub fn device_bytes_written(dir: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let device = fs::metadata(dir).ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    parse_device(&fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?)
}

/// The seventh number: sectors written, of 512 bytes whatever the device's are.
fn parse_device(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(6)?.parse::<u64>().ok().map(|sectors| 512 * sectors)
}

/// The first number behind `name:`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Bytes of disk that a folder takes, holes not counted; nor what is removed meanwhile.
pub fn bytes_on_disk(dir: &Path) -> std::io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    /// `st_blocks` counts these, whatever the file system's own blocks are.
    const STAT_BLOCK: u64 = 512;
    let mut total = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        total += if metadata.is_dir() {
            bytes_on_disk(&entry.path())?
        } else {
            metadata.blocks() * STAT_BLOCK
        };
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_leaves_out_idle_and_waiting() {
        let stat = "cpu  10 20 30 4000 500 6 7 8 0 0\ncpu0 1 2 3 4\n";
        assert_eq!(parse_machine_cpu(stat), Some(Duration::from_millis(810)));
        assert_eq!(parse_machine_cpu("garbage"), None);
    }

    #[test]
    fn fields_of_status_files_are_found_by_their_whole_name() {
        let text = "VmPeak:\t  9 kB\nVmHWM:\t  2048 kB\ncancelled_write_bytes: 1\nwrite_bytes: 7\n";
        assert_eq!(field(text, "VmHWM"), Some(2048));
        assert_eq!(field(text, "write_bytes"), Some(7));
        assert_eq!(field(text, "VmRSS"), None);
    }

    #[test]
    fn a_device_tells_what_was_written_among_else() {
        let stat = "  2586039    47226 93716714  8313529  6186962   383280 7 4081737 0 700124\n";
        assert_eq!(parse_device(stat), Some(3584));
        assert_eq!(parse_device("1 2 3"), None);
    }

    #[test]
    fn disk_usage_counts_folders_within() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("in")).unwrap();
        fs::write(dir.path().join("in/file"), vec![1; 100_000]).unwrap();
        let bytes = bytes_on_disk(dir.path()).unwrap();
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
    }
}
