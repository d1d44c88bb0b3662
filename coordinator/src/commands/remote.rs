//! How commands reach a service: its address, the token, and what its answers mean.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use proto::route::{Route, Verdict};
use proto::tls::{ClientTls, IdentityFiles};
use proto::token::Token;
use proto::v1::jobs_client::JobsClient;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// Where the service is, and who asks.
#[derive(clap::Args, Clone, Debug)]
pub struct Reach {
    /// The service, as http://host:port, or https://host:port with --ca
    #[arg(long, value_name = "URL", env = "GRAMMATON_COORDINATOR")]
    pub coordinator: Option<String>,
    /// File that holds a token of the service; without it, the variable GRAMMATON_TOKEN
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificate (PEM) of the authority that signed the service's certificate
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Certificate (PEM) to show to a service that demands one
    #[arg(long, value_name = "FILE", requires_all = ["ca", "key"])]
    pub cert: Option<PathBuf>,
    /// Private key (PEM) of --cert
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}

/// The calls of a service.
pub type Jobs = JobsClient<InterceptedService<Channel, Bearer>>;

/// Shows a token with every call.
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

/// A way to a service that is not open yet.
pub struct Way {
    url: String,
    route: Route,
    token: Option<Token>,
}

impl Reach {
    /// Checks what was given; `url` takes the place of --coordinator.
    pub fn way(&self, url: Option<&str>) -> Result<Way> {
        let Some(url) = url.or(self.coordinator.as_deref()) else {
            bail!(
                "which service is not said; give its address with --coordinator URL, or in GRAMMATON_COORDINATOR"
            );
        };
        let identity = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => Some(IdentityFiles { certificate, key }),
            _ => None,
        };
        let tls = self.ca.as_deref().map(|ca| ClientTls::read(ca, identity)).transpose()?;
        let (route, token) = (Route::new(url, tls.as_ref())?, Token::find(self.token_file.as_deref())?);
        Ok(Way { url: url.to_owned(), route, token })
    }

    /// What `call` answers, given the calls of the service; on a runtime of its own.
    pub fn ask<T>(&self, call: impl AsyncFnOnce(&mut Jobs) -> Result<T, Status>) -> Result<T> {
        let way = self.way(None)?;
        runtime()?.block_on(way.ask(call))
    }
}

/// A runtime for one command.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")
}

impl Way {
    /// What `call` answers, over a connection of its own.
    pub async fn ask<T>(&self, call: impl AsyncFnOnce(&mut Jobs) -> Result<T, Status>) -> Result<T> {
        self.with(async |channel, bearer| call(&mut JobsClient::with_interceptor(channel, bearer)).await)
            .await
    }

    /// What `call` answers, given an open connection and the token.
    pub async fn with<T>(&self, call: impl AsyncFnOnce(Channel, Bearer) -> Result<T, Status>) -> Result<T> {
        let verdict = Verdict::default();
        let answer = match self.route.open(&verdict).await {
            Ok(channel) => call(channel, Bearer(self.token.clone())).await.map_err(Refused),
            Err(error) => Err(Refused(Status::unavailable(format!(
                "no coordinator answers there: {:#}",
                anyhow!(error)
            )))),
        };
        match verdict.get() {
            // What the connection showed says more than how it ended.
            Some(distrust) => bail!("{}: {distrust}", self.url),
            // What is said of jobs and files is what `train` would say of them.
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

/// A call that was refused, or came to nothing.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message())]
pub struct Refused(pub Status);

/// The code of a refusal, if that is what the error is.
pub fn code(error: &anyhow::Error) -> Option<Code> {
    error.downcast_ref::<Refused>().map(|refused| refused.0.code())
}

/// Whether the service may answer the same call another time.
pub fn is_passing(error: &anyhow::Error) -> bool {
    matches!(code(error), Some(Code::Unavailable | Code::Cancelled | Code::Unknown))
}
