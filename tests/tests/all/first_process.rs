//! The first process of a container. Law: SIGTERM and Ctrl-C end every command there, although the system ignores signals that the first process does
//! not handle.

use std::fs;
use std::process::Command;

use grammaton_tests::folder::Folder;
use grammaton_tests::{Process, binary, eventually, requirement};

/// Bits of SIGINT and SIGTERM in the mask of signals that a process handles.
const BOTH: u64 = 1 << 1 | 1 << 14;

/// A job whose corpus never comes.
const JOB: &str =
    "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"pipe\"\n[inference]\nmethod = \"vb\"\n";

/// A command that runs as process 1 of a PID namespace, and its id outside.
struct First {
    unshare: Process,
    id: u32,
}

impl First {
    /// Starts `grammaton` with `args` in `folder`, and waits until it handles signals.
    fn start(folder: &Folder, args: &[&str]) -> First {
        let mut command = Command::new("unshare");
        command
            .args(["-rpf", "--kill-child"])
            .arg(binary("grammaton"))
            .args(args)
            .current_dir(folder.path(""));
        let mut unshare = Process::spawn(command.env_remove("GRAMMATON_TOKEN"));
        let children = format!("/proc/{0}/task/{0}/children", unshare.id());
        let mut id = 0;
        let log = format!("{args:?} handles no signals");
        eventually(&|| log.clone(), || {
            assert_eq!(unshare.ended(), None, "{args:?}: {}", unshare.log());
            let child = fs::read_to_string(&children).unwrap_or_default();
            id = child.trim().parse().unwrap_or(0);
            let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default();
            let is_program = status.starts_with("Name:\tgrammaton\n");
            is_program && u64::from_str_radix(mask.trim(), 16).unwrap_or(0) & BOTH == BOTH
        });
        First { unshare, id }
    }

    /// Exit code after the signal.
    fn end(mut self, signal: &str) -> Option<i32> {
        let sent = Command::new("kill").args([format!("-{signal}"), self.id.to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "cannot send SIG{signal}");
        self.unshare.wait().code()
    }
}

#[test]
fn signals_end_every_kind_of_command_in_a_container() {
    let allowed = Command::new("unshare").args(["-rpf", "true"]).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        requirement::missing("namespaces", "user namespaces are not allowed here");
        return;
    }
    let folder = Folder::new(&[("job.toml", JOB)]);
    let made = Command::new("mkfifo").arg(folder.path("pipe")).status();
    assert!(made.is_ok_and(|status| status.success()));
    // A command without signals of its own, which waits for its input; and those that stop by themselves.
    let waits = ["eval", "stats", "pipe"];
    assert_eq!(First::start(&folder, &waits).end("TERM"), Some(143));
    assert_eq!(First::start(&folder, &waits).end("INT"), Some(130));
    // A signal may come at any moment while a command begins to listen.
    for _ in 0..20 {
        assert_eq!(First::start(&folder, &["train", "job.toml", "--out", "out"]).end("TERM"), Some(143));
    }
    let serves = ["serve", "--store", "store", "--listen", "127.0.0.1:0", "--address-file", "address"];
    let service = First::start(&folder, &serves);
    eventually(&|| service.unshare.log(), || folder.path("address").exists());
    assert_eq!(service.end("TERM"), Some(0));
    let works = ["worker", "--coordinator", "http://127.0.0.1:9"];
    assert_eq!(First::start(&folder, &works).end("TERM"), Some(0));
}
