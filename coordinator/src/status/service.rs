//! The gRPC service `Status`: answers `grammaton status`.

use proto::v1;
use proto::v1::status_server::Status;
use tonic::{Request, Response};

use super::Board;
use super::snapshot::snapshot;
use crate::access::{Access, Role};
use crate::fleet::Watcher;

/// Tells whoever has the token how job and fleet are.
pub struct StatusService {
    board: Board,
    watcher: Watcher,
    access: Access,
}

impl StatusService {
    /// Of the run that writes `board` and the fleet that `watcher` asks.
    pub fn new(board: Board, watcher: Watcher, access: Access) -> StatusService {
        StatusService { board, watcher, access }
    }
}

#[tonic::async_trait]
impl Status for StatusService {
    async fn now(&self, request: Request<v1::NowRequest>) -> Result<Response<v1::Snapshot>, tonic::Status> {
        let header = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        self.access.admit(header, Role::Read).map_err(tonic::Status::from)?;
        let fleet = self.watcher.status().await;
        let fleet = fleet.ok_or_else(|| tonic::Status::unavailable("the coordinator is about to end"))?;
        Ok(Response::new(snapshot(&self.board.read(), &fleet)))
    }
}
