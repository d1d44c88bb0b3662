//! Connections to a service: address, token, and errors.

use anyhow::{Context, Result, bail};
use proto::route::{Route, Verdict, why_not_open};
use proto::tls::ClientTls;
use proto::token::Token;
use proto::v1::jobs_client::JobsClient;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// Client of a service.
pub type Jobs = JobsClient<InterceptedService<Channel, Bearer>>;

/// Adds the token to every call.
#[derive(Clone)]
pub struct Bearer(Option<Token>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.header());
        }
        Ok(request)
    }
}

/// Checked settings of a connection that is not open yet.
pub struct Way {
    url: String,
    route: Route,
    token: Option<Token>,
}

/// A runtime for one command.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")
}

impl Way {
    /// Checks the address of a service.
    pub fn new(url: &str, tls: Option<&ClientTls>, token: Option<Token>) -> Result<Way> {
        Ok(Way { url: url.to_owned(), route: Route::new(url, tls)?, token })
    }

    /// Runs `call` with a client, over a new connection.
    pub async fn ask<T>(&self, call: impl AsyncFnOnce(&mut Jobs) -> Result<T, Status>) -> Result<T> {
        self.with(async |channel, bearer| call(&mut JobsClient::with_interceptor(channel, bearer)).await)
            .await
    }

    /// Runs `call` with an open connection and the token.
    pub async fn with<T>(&self, call: impl AsyncFnOnce(Channel, Bearer) -> Result<T, Status>) -> Result<T> {
        let verdict = Verdict::default();
        let answer = match self.route.open(&verdict).await {
            Ok(channel) => call(channel, Bearer(self.token.clone())).await.map_err(Refused),
            Err(error) => Err(Refused(Status::unavailable(format!(
                "no coordinator answers at this address: {}",
                why_not_open(&error)
            )))),
        };
        match verdict.get() {
            // An error of authentication explains more than the error of the call.
            Some(distrust) => bail!("{}: {distrust}", self.url),
            // Messages about jobs and files are printed as `train` prints them.
            None => match answer {
                Err(Refused(status)) if is_about_jobs(status.code()) => Err(Refused(status).into()),
                answer => answer.with_context(|| self.url.clone()),
            },
        }
    }
}

fn is_about_jobs(code: Code) -> bool {
    matches!(code, Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition)
}

/// A call that failed.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message())]
pub struct Refused(pub Status);

/// The gRPC code of the error, if it is a failed call.
pub fn code(error: &anyhow::Error) -> Option<Code> {
    error.downcast_ref::<Refused>().map(|refused| refused.0.code())
}

/// Whether the same call may succeed later.
pub fn is_passing(error: &anyhow::Error) -> bool {
    let is_broken_off = |Refused(status): &Refused| proto::route::is_broken_off(status);
    matches!(code(error), Some(Code::Unavailable | Code::Cancelled | Code::Unknown))
        || error.downcast_ref().is_some_and(is_broken_off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_whose_connection_breaks_off_is_made_again() {
        let ended = |status: Status| is_passing(&anyhow::Error::from(Refused(status)).context("http://host"));
        assert!(ended(Status::internal("h2 protocol error: error reading a body from connection")));
        assert!(ended(Status::unavailable("tcp connect error")));
        assert!(!ended(Status::internal("a defect")));
    }
}
