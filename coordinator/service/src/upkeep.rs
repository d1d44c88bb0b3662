//! The thread that renews the leader lease, copies logs to the object store, gives turns to waiting users, and deletes old jobs.

use std::sync::Weak;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::Result;
use basics::clock;

use super::controller::Controller;
use super::deletion::SteadyClock;
use super::leader_lease::{LeaderLease, taken_over};
use super::record::JobId;
use super::remote::COPY_INTERVAL;
use super::{Inner, Service, now, spawn};

/// Asks the thread to end, by a channel that closes when it has.
pub(super) struct Upkeep(Sender<Sender<()>>);

impl Upkeep {
    /// Starts the thread, with the lease if there is an object store. It does not keep the service alive.
    pub fn start(service: Weak<Inner>, mut lease: Option<LeaderLease>) -> Result<Upkeep> {
        let (ask, asked) = channel();
        spawn("upkeep", move || {
            let mut steady_clock = SteadyClock::default();
            while let Some(inner) = service.upgrade() {
                if !keep_up(&Service(inner), lease.as_mut(), &mut steady_clock) {
                    return;
                }
                match asked.recv_timeout(COPY_INTERVAL) {
                    Err(RecvTimeoutError::Timeout) => {}
                    asked => {
                        if let Some(inner) = service.upgrade() {
                            leave(&Service(inner), lease.as_mut());
                        }
                        return drop(asked);
                    }
                }
            }
        })?;
        Ok(Upkeep(ask))
    }

    /// Has the thread copy the remaining changes and release the lease; waits up to `timeout`.
    pub fn stop(&self, timeout: Duration) {
        let (ended, wait) = channel();
        // A thread that has ended already closes the channel at once.
        let _ = self.0.send(ended);
        if wait.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("the object store does not answer; the next service will wait for this one");
        }
    }
}

/// Performs one turn of upkeep. Returns whether this service is still the leader.
fn keep_up(service: &Service, lease: Option<&mut LeaderLease>, steady_clock: &mut SteadyClock) -> bool {
    if let Some(lease) = lease {
        match renew(service, lease) {
            Ok(None) => {}
            Ok(Some(reason)) => {
                service.0.ousted.send_replace(Some(reason));
                return false;
            }
            Err(error) => tracing::warn!("the object store cannot follow: {error:#}; trying again"),
        }
    }
    // Its result is shown by the queue.
    drop(service.ask(Controller::take_turns));
    if steady_clock.check(now(), clock::now()) {
        service.expire(now());
    }
    true
}

/// Renews the lease and copies the audit and the logs of running jobs. Returns why this service has to end, if another one is the leader.
fn renew(service: &Service, lease: &mut LeaderLease) -> Result<Option<String>> {
    let job_store = &service.0.job_store;
    let Some(remote) = job_store.remote() else { return Ok(None) };
    if !lease.renew(remote.store())? {
        return Ok(Some(taken_over(remote.store())));
    }
    let running: Vec<JobId> = service.0.working.lock().keys().copied().collect();
    job_store.copy_logs(&running).map(|()| None)
}

fn leave(service: &Service, lease: Option<&mut LeaderLease>) {
    let Some((lease, remote)) = lease.zip(service.0.job_store.remote()) else { return };
    let left = service.0.job_store.copy_logs(&[]).and_then(|()| lease.leave(remote.store()));
    if let Err(error) = left {
        tracing::warn!("the next service will wait for this one: {error:#}");
    }
}
