//! Kills of a process at a system call: `bin/kill-at.rs` as a command around another one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary;

/// A system call by its number: the process is killed before the `n`-th one that changes something in `folder`. None has the number 0.
pub struct KillAt {
    n: u64,
    folder: PathBuf,
    count: PathBuf,
}

impl KillAt {
    /// The `n`-th call that changes something in `folder`; the calls are counted in the file `count`.
    pub fn new(n: u64, folder: &Path, count: &Path) -> KillAt {
        KillAt { n, folder: folder.canonicalize().expect("the folder exists"), count: count.to_owned() }
    }

    /// Wraps `command`, whose calls are counted.
    pub fn wrap(&self, command: &Command) -> Command {
        let mut wrapped = Command::new(binary("kill-at"));
        wrapped.arg(self.n.to_string()).args([&self.folder, &self.count]);
        wrapped.arg(command.get_program()).args(command.get_args());
        if let Some(folder) = command.get_current_dir() {
            wrapped.current_dir(folder);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => wrapped.env(name, value),
                None => wrapped.env_remove(name),
            };
        }
        wrapped
    }

    /// The number of calls so far.
    pub fn calls(&self) -> u64 {
        let text = std::fs::read_to_string(&self.count).unwrap_or_default();
        text.parse().unwrap_or(0)
    }
}

/// Numbers of calls to be killed at: all up to `calls` with `KILLS=all`, and otherwise `KILLS` of them (by default `usual`) that depend on `SEED`.
pub fn points(calls: u64, usual: u64) -> Vec<u64> {
    let setting = |name: &str| std::env::var(name).ok();
    let n = match setting("KILLS") {
        Some(text) if text == "all" => calls,
        text => text.map_or(usual, |text| text.parse().expect("KILLS is a number, or `all`")).min(calls),
    };
    let seed: u64 = setting("SEED").map_or(1, |text| text.parse().expect("SEED is a number"));
    // One of each of n intervals of about the same length.
    (0..n)
        .map(|at| {
            let (from, to) = (at * calls / n, (at + 1) * calls / n);
            let mixed = (seed ^ at).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            1 + from + mixed % (to - from)
        })
        .collect()
}
