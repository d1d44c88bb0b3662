//! Asks a fleet for its status.

use tokio::sync::{mpsc, oneshot};

use super::messages::Input;
use super::status::FleetStatus;

/// Asks a fleet for its status, from any task; does not keep the fleet alive.
#[derive(Clone)]
pub struct Watcher {
    inputs: mpsc::Sender<Input>,
}

impl Watcher {
    /// A watcher of the driver at the other end of `inputs`.
    pub(super) fn new(inputs: mpsc::Sender<Input>) -> Watcher {
        Watcher { inputs }
    }

    /// The status of the fleet; `None` once it has stopped.
    pub async fn status(&self) -> Option<FleetStatus> {
        let (reply, status) = oneshot::channel();
        self.inputs.send(Input::StatusAsked { reply }).await.ok()?;
        status.await.ok()
    }

    /// [`Watcher::status`] for threads outside a runtime.
    pub(super) fn blocking_status(&self) -> Option<FleetStatus> {
        let (reply, status) = oneshot::channel();
        self.inputs.blocking_send(Input::StatusAsked { reply }).ok()?;
        status.blocking_recv().ok()
    }
}
