//! What the figures were measured on: without it they mean nothing.

use std::path::Path;
use std::{fmt, fs};

use serde::Serialize;
use tyr_telemetry::Day;
use tyr_telemetry::source::now_us;

use super::meter::cpus;
use crate::data::size_text;

/// The machine, the program, the day.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name for itself.
    pub cpu: String,
    /// How many this process may use.
    pub cpus: usize,
    /// Of the whole machine.
    pub memory: String,
    /// The kernel's name and release.
    pub kernel: String,
    /// The type of the file system that holds the folders.
    pub file_system: String,
    /// Of this program.
    pub version: &'static str,
    /// Optimised, or not.
    pub build: &'static str,
    /// In UTC.
    pub date: String,
}

/// In two lines.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cpus, memory, kernel, file_system, version, build, date } = self;
        writeln!(f, "{cpu}, {cpus} CPUs, {memory}, {kernel}, {file_system}")?;
        write!(f, "tyr {version} ({build}), {date}")
    }
}

/// Describes this machine; `dir` is where the folders are.
pub fn describe(dir: &Path) -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let unknown = || "unknown".to_owned();
    let memory = field(&read("/proc/meminfo"), "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    Machine {
        cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(unknown),
        cpus: cpus(),
        memory: memory.map_or_else(unknown, |kib| size_text(kib << 10)),
        kernel: format!(
            "{} {}",
            read("/proc/sys/kernel/ostype").trim(),
            read("/proc/sys/kernel/osrelease").trim()
        ),
        file_system: mount_type(&read("/proc/mounts"), dir).unwrap_or_else(unknown),
        version: env!("CARGO_PKG_VERSION"),
        build: if cfg!(debug_assertions) { "debug" } else { "release" },
        date: Day::of(now_us()).to_string(),
    }
}

/// What stands behind the first `name :`.
fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The type of the deepest mount that holds `dir`.
fn mount_type(mounts: &str, dir: &Path) -> Option<String> {
    let dir = dir.canonicalize().ok()?;
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((fields.next()?, fields.next()?))
        })
        .filter(|(point, _)| dir.starts_with(point))
        .max_by_key(|(point, _)| point.len())
        .map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_counts() {
        let dir = tempfile::tempdir().unwrap();
        let point = dir.path().canonicalize().unwrap();
        let mounts = format!("/dev/a / ext4 rw 0 0\ntmp {} tmpfs rw 0 0\n", point.display());
        assert_eq!(mount_type(&mounts, dir.path()).as_deref(), Some("tmpfs"));
        assert_eq!(mount_type("/dev/a / ext4 rw 0 0\n", dir.path()).as_deref(), Some("ext4"));
    }
}
