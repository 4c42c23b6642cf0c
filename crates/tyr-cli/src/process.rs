//! What the operating system says of this process, 0 where it does not say; and is told of it.

use rustix::time::{ClockId, clock_gettime};

/// Processor time so far, in seconds.
pub fn cpu_seconds() -> u64 {
    u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or(0)
}

/// Asks for memory in small pages only. A node takes and gives back memory all the time, a little
/// here and there, and a huge page is zeroed as a whole for the first byte in it: who waits then,
/// waits for that. Nothing depends on it.
pub fn refuse_huge_pages() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Memory in use, in bytes.
pub fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// The machine's name; empty where it does not say.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Open files and sockets.
pub fn open_files() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64)
}
