//! What tells one worker from another, whatever it calls itself.

use std::sync::Arc;

use shared::work::lease::InstanceId;

use super::MemberId;

/// What the coordinator knows of a member beside its name, which anybody can choose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The worker's process. A member that returns with it is the same worker, and may answer the leases of the member that it was.
    pub process: Process,
    /// Where the worker is.
    pub origin: Origin,
}

/// A worker's process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Process {
    /// One that names itself by its secret, and so can return.
    Named(InstanceId),
    /// One that does not: each of its connections counts as another process.
    Unnamed(MemberId),
}

/// Where a worker is, in words: the names in its certificate, or without one its address. A stranger has few of them, however often it
/// connects; honest workers may share one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Origin(pub Arc<str>);
