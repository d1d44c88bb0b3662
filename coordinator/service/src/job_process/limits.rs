//! Limits of processes: of a job's memory, CPU time and priority, and its end with the service; of a service's open files.

use std::fs;
use std::io;

use rustix::process::{Resource, Rlimit, nice, setrlimit};

/// Priority below that of the service, so that pages and heartbeats do not wait for a job.
const NICENESS: i32 = 5;

/// Preference of the process over the service when the machine has no memory left, in thousandths of the memory.
#[cfg(target_os = "linux")]
const OOM_SCORE: &str = "500";

/// Limits this process to `memory` bytes and `cpu_seconds`, lowers its priority, and ends it with the thread that started it.
pub fn apply(memory: u64, cpu_seconds: Option<u64>) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    nice(NICENESS)?;
    // Without it the system may end the service instead, when jobs take more memory together than there is. Some containers do not allow it.
    #[cfg(target_os = "linux")]
    drop(fs::write("/proc/self/oom_score_adj", OOM_SCORE));
    // Heap, stacks and anonymous memory; files that are mapped do not count.
    setrlimit(Resource::Data, Rlimit { current: Some(memory), maximum: Some(memory) })?;
    if cpu_seconds.is_some() {
        setrlimit(Resource::Cpu, Rlimit { current: cpu_seconds, maximum: None })?;
    }
    Ok(())
}

/// Allows this process as many open files as the system lets it: a connection is one.
pub fn raise_open_files() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    // With fewer, connections wait, and the log says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Half of the memory of the machine or of the container, in bytes: the default limit.
pub fn half_of_memory() -> u64 {
    let machine = total_memory();
    let container = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let container = container.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
    machine.min(container) / 2
}

#[cfg(target_os = "linux")]
fn total_memory() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(info.mem_unit.into())
}

#[cfg(not(target_os = "linux"))]
fn total_memory() -> u64 {
    16 << 30 // no portable way to ask
}
