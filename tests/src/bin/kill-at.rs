//! `kill-at N FOLDER COUNT COMMAND...`: runs a command, and kills it with all processes that it started before the `N`-th system call by which
//! any of their threads changes a file or folder below `FOLDER`. The file `COUNT` has the number of these calls so far. Without a kill the exit
//! code is that of the command; with one it is 137.
//!
//! strace can kill at the n-th call too, but counts the calls of each thread by themselves; here they are in one order.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().unwrap_or_default();
    let (n, folder, count) = (next().parse()?, std::path::PathBuf::from(next()), next());
    let command: Vec<String> = arguments.collect();
    let code = traced::Traced::start(&command)?.kill_at(n, &folder, std::path::Path::new(&count))?;
    std::process::exit(code)
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() -> anyhow::Result<()> {
    anyhow::bail!("system calls are counted on Linux on x86_64 only")
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod traced {
    use std::collections::BTreeSet;
    use std::io::Write as _;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};

    use anyhow::Result;
    use nix::errno::Errno;
    use nix::libc::{self, c_long};
    use nix::sys::ptrace::{self, Options};
    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    use nix::unistd::Pid;

    /// Waits for one byte, so that tracing begins before the command.
    const SHELL: &str = "read -r _ && exec \"$@\" </dev/null";

    /// A traced command.
    pub struct Traced {
        root: Child,
        /// Threads that are in a system call.
        inside: BTreeSet<Pid>,
        threads: BTreeSet<Pid>,
    }

    impl Traced {
        pub fn start(command: &[String]) -> Result<Traced> {
            let mut shell = Command::new("sh");
            let mut root = shell.args(["-c", SHELL, "sh"]).args(command).stdin(Stdio::piped()).spawn()?;
            let pid = Pid::from_raw(root.id() as i32);
            ptrace::seize(
                pid,
                Options::PTRACE_O_EXITKILL
                    | Options::PTRACE_O_TRACESYSGOOD
                    | Options::PTRACE_O_TRACECLONE
                    | Options::PTRACE_O_TRACEFORK
                    | Options::PTRACE_O_TRACEVFORK
                    | Options::PTRACE_O_TRACEEXEC,
            )?;
            ptrace::interrupt(pid)?;
            if let Some(mut input) = root.stdin.take() {
                input.write_all(b"\n")?;
            }
            Ok(Traced { root, inside: BTreeSet::new(), threads: BTreeSet::from([pid]) })
        }

        /// Follows all threads to their end.
        pub fn kill_at(mut self, n: u64, folder: &Path, count: &Path) -> Result<i32> {
            let (mut calls, mut code) = (0, 0);
            loop {
                let status = match waitpid(None, Some(WaitPidFlag::__WALL)) {
                    Err(Errno::ECHILD) => return Ok(code),
                    Err(Errno::EINTR) => continue,
                    status => status?,
                };
                let mut signal = None;
                match status {
                    WaitStatus::PtraceSyscall(thread) => {
                        let enters = !self.inside.remove(&thread);
                        if enters {
                            self.inside.insert(thread);
                        }
                        if enters && changes(thread, folder) {
                            calls += 1;
                            std::fs::write(count, calls.to_string())?;
                            if calls == n {
                                self.kill();
                                continue;
                            }
                        }
                    }
                    WaitStatus::PtraceEvent(thread, _, event) => {
                        self.threads.insert(thread);
                        // After an `exec` the call returns in a program that begins outside of it.
                        if event == libc::PTRACE_EVENT_EXEC {
                            self.inside.insert(thread);
                        }
                    }
                    WaitStatus::Stopped(thread, sent) => {
                        self.threads.insert(thread);
                        signal = Some(sent);
                    }
                    WaitStatus::Exited(thread, exit) => self.ended(thread, exit, &mut code),
                    WaitStatus::Signaled(thread, sent, _) => self.ended(thread, 128 + sent as i32, &mut code),
                    _ => {}
                }
                if let Some(thread) = status.pid().filter(|thread| self.threads.contains(thread)) {
                    // A thread that was killed meanwhile is no error.
                    let _ = ptrace::syscall(thread, signal);
                }
            }
        }

        fn ended(&mut self, thread: Pid, exit: i32, code: &mut i32) {
            self.threads.remove(&thread);
            self.inside.remove(&thread);
            if thread.as_raw() as u32 == self.root.id() {
                *code = exit;
            }
        }

        /// Kills all processes; none of them goes on with its system call.
        fn kill(&self) {
            for &thread in &self.threads {
                let _ = kill(thread, Signal::SIGKILL);
            }
        }
    }

    /// Whether the system call that a thread is about to make changes something below `folder`.
    fn changes(thread: Pid, folder: &Path) -> bool {
        let Ok(call) = ptrace::getregs(thread) else { return false };
        match call.orig_rax as c_long {
            libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_pwrite64
            | libc::SYS_fsync
            | libc::SYS_fdatasync
            | libc::SYS_ftruncate
            | libc::SYS_fchmod
            | libc::SYS_fallocate => is_below(open_file(thread, call.rdi), folder),
            libc::SYS_copy_file_range => is_below(open_file(thread, call.rdx), folder),
            libc::SYS_sendfile => is_below(open_file(thread, call.rdi), folder),
            libc::SYS_open => creates(call.rsi),
            libc::SYS_openat => creates(call.rdx),
            libc::SYS_creat
            | libc::SYS_rename
            | libc::SYS_renameat
            | libc::SYS_renameat2
            | libc::SYS_unlink
            | libc::SYS_unlinkat
            | libc::SYS_mkdir
            | libc::SYS_mkdirat
            | libc::SYS_rmdir
            | libc::SYS_link
            | libc::SYS_linkat
            | libc::SYS_symlink
            | libc::SYS_symlinkat
            | libc::SYS_truncate => true,
            _ => false,
        }
    }

    /// Whether flags of `open` may make a file or empty it.
    fn creates(flags: u64) -> bool {
        flags as i32 & (libc::O_CREAT | libc::O_TRUNC | libc::O_TMPFILE & !libc::O_DIRECTORY) != 0
    }

    fn open_file(thread: Pid, descriptor: u64) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{thread}/fd/{descriptor}")).ok()
    }

    fn is_below(path: Option<PathBuf>, folder: &Path) -> bool {
        path.is_some_and(|path| path.starts_with(folder))
    }
}
