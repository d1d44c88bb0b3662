//! The gRPC service `Status`: answers `grammaton status`.

use std::sync::Arc;

use fleet::access::{Access, Role};
use fleet::{QUESTION, Services, Visitor, Watcher};
use proto::v1;
use proto::v1::status_server::{Status, StatusServer};
use tonic::service::Routes;
use tonic::{Request, Response};

use super::RunStatus;
use super::snapshot::snapshot;

/// The service, for the run that writes `run_status`, beside the workers of its fleet.
pub fn services(run_status: RunStatus, access: Access) -> Services {
    Arc::new(move |watcher| {
        let service = StatusService { run_status: run_status.clone(), watcher, access: access.clone() };
        Routes::new(StatusServer::new(service).max_decoding_message_size(QUESTION))
    })
}

/// Reports the state of job and fleet to clients with the token.
struct StatusService {
    run_status: RunStatus,
    watcher: Watcher,
    access: Access,
}

#[tonic::async_trait]
impl Status for StatusService {
    async fn now(&self, request: Request<v1::NowRequest>) -> Result<Response<v1::Snapshot>, tonic::Status> {
        let header = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        let admit = || self.access.admit(header, Role::Read);
        match request.extensions().get::<Visitor>() {
            Some(visitor) => visitor.admit_token(header, admit)?,
            None => admit()?,
        };
        let fleet = self.watcher.status().await;
        let fleet = fleet.ok_or_else(|| tonic::Status::unavailable("the coordinator is about to end"))?;
        Ok(Response::new(snapshot(&self.run_status.read(), &fleet)))
    }
}
