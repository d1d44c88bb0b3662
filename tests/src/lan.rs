//! Hosts on a network that can be cut: network namespaces on a bridge, without privileges.
//!
//! The head is the host of the coordinator, with the bridge and separate mounts; every other host has a cable. A cut cable drops packets
//! silently, like a broken switch: no connection is reset.

use std::process::Command;

use parking_lot::Mutex;

use crate::{Lines, Process};

/// Address of the coordinator's host.
pub const HEAD: &str = "10.77.0.1";

/// A head and hosts, until dropped.
pub struct Lan {
    head: Host,
    hosts: Vec<Host>,
}

/// A process that holds the namespaces.
struct Host {
    process: Process,
    /// Ends with the process. Threads share hosts.
    _lines: Mutex<Lines>,
}

impl Lan {
    /// Creates `n_hosts` hosts besides the head; the error says why namespaces are not possible.
    pub fn new(n_hosts: usize) -> Result<Lan, String> {
        let allowed = Command::new("unshare").args(["-rnm", "ip", "link", "add", "type", "bridge"]).output();
        if !allowed.is_ok_and(|output| output.status.success()) {
            return Err(
                "network namespaces are not allowed here, or there is no `unshare` or `ip`".to_owned()
            );
        }
        let mut lan = Lan { head: Host::hold(Command::new("unshare").arg("-rnm")), hosts: Vec::new() };
        lan.shell(&format!(
            "ip link set lo up && ip link add br0 type bridge && ip addr add {HEAD}/24 dev br0 && ip link set br0 up"
        ));
        for number in 0..n_hosts {
            let host = Host::hold(lan.head.enter("-m").args(["unshare", "-n"]));
            lan.shell(&format!(
                "ip link add v{number} type veth peer name eth0 netns {} && ip link set v{number} master br0 up",
                host.process.id()
            ));
            let address = format!("10.77.0.{}/24", 11 + number);
            let up = format!("ip link set lo up && ip addr add {address} dev eth0 && ip link set eth0 up");
            succeed(host.enter("-U").args(["sh", "-c", &up]));
            lan.hosts.push(host);
        }
        Ok(lan)
    }

    /// Wraps `command` to run on the head.
    pub fn on_head(&self, command: &Command) -> Command {
        moved(self.head.enter("-m"), command)
    }

    /// Wraps `command` to run on host number `host`.
    pub fn on(&self, host: usize, command: &Command) -> Command {
        moved(self.hosts[host].enter("-U"), command)
    }

    /// Runs a script on the head and checks that it succeeds.
    pub fn shell(&self, script: &str) {
        succeed(self.head.enter("-m").args(["sh", "-c", script]));
    }

    /// Cuts the cable of a host.
    pub fn cut(&self, host: usize) {
        self.shell(&format!("ip link set v{host} nomaster"));
    }

    /// Repairs the cable of a host.
    pub fn heal(&self, host: usize) {
        self.shell(&format!("ip link set v{host} master br0"));
    }
}

impl Host {
    /// Starts a process in new namespaces with `unshare`, and waits until it runs.
    fn hold(unshare: &mut Command) -> Host {
        // The process ends by itself if the test is killed.
        let (process, lines) = Process::spawn_read(unshare.args(["sh", "-c", "echo there; exec sleep 7200"]));
        assert_eq!(lines.next().as_deref(), Some("there"), "{}", process.log());
        Host { process, _lines: Mutex::new(lines) }
    }

    /// Incomplete command in the user and network namespaces of this host, and in those that `more` names.
    fn enter(&self, more: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--preserve-credentials", "-t", &self.process.id().to_string(), "-U", "-n", more]);
        command
    }
}

/// Appends `command` to `there`, with its folder and environment.
fn moved(mut there: Command, command: &Command) -> Command {
    let folder = command.get_current_dir().map_or_else(std::env::temp_dir, |folder| folder.to_owned());
    there.args(["sh", "-c", "cd \"$0\" && exec \"$@\""]).arg(folder);
    there.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => there.env(name, value),
            None => there.env_remove(name),
        };
    }
    there
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
