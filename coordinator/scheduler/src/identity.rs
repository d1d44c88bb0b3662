//! Identity of workers, independent of the names that they choose.

use std::sync::Arc;

use grammaton::work::lease::InstanceId;

use super::MemberId;

/// Identity of a member beside its name, which the worker chooses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The worker's process. A member with the same process is the same worker, and may answer the leases of the earlier member.
    pub process: Process,
    /// The machine that it runs on.
    pub machine: Machine,
}

/// A worker's process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Process {
    /// A process with a secret id, which can reconnect.
    Named(InstanceId),
    /// A process without id: each of its connections counts as another process.
    Unnamed(MemberId),
}

/// A worker's machine: the names in its certificate, or without one its token and address. An attacker has few machines, however often it
/// connects; honest workers may share one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Machine(pub Arc<str>);

impl Machine {
    /// The machine of a worker with a certificate of these names.
    pub fn certified(names: &str) -> Machine {
        Machine(format!("{CERTIFICATE}{names}").into())
    }

    /// Whether it is known by a certificate.
    pub fn has_certificate(&self) -> bool {
        self.0.starts_with(CERTIFICATE)
    }
}

/// No address begins like this.
const CERTIFICATE: &str = "certificate ";
