//! What the operating system says of this process; 0 where it does not say.

use rustix::time::{ClockId, clock_gettime};

/// Processor time so far, in seconds.
pub fn cpu_seconds() -> u64 {
    u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or(0)
}

/// Memory in use, in bytes.
pub fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Open files and sockets.
pub fn open_files() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64)
}
