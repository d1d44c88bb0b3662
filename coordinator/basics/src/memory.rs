//! Memory of processes, as Linux tells it.

use std::fs;

/// Bytes that this process has in memory.
pub fn resident() -> Option<u64> {
    of_process(std::process::id(), "VmRSS:")
}

/// Most bytes that a process has had in memory so far.
pub fn peak(process: u32) -> Option<u64> {
    of_process(process, "VmHWM:")
}

fn of_process(process: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}
