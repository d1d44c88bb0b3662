//! The HTTP port: `/metrics` for Prometheus, `/health` for probes that speak no gRPC.
//!
//! In: requests from anyone who reaches the port; it serves numbers, and takes nothing. Runs on a thread of its own until
//! it is dropped.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, Result};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::oneshot;

use super::exposition::exposition;
use crate::fleet::Watcher;
use crate::status::RunStatus;

/// Serves until dropped.
pub struct Http {
    address: SocketAddr,
    /// Dropped with it, which ends the thread.
    _running: oneshot::Sender<()>,
}

#[derive(Clone)]
struct Watched {
    run_status: RunStatus,
    watcher: Watcher,
}

impl Http {
    /// Listens at `address`; port 0 takes any free one.
    pub fn start(address: SocketAddr, run_status: RunStatus, watcher: Watcher) -> Result<Http> {
        let refused = || format!("{address}: cannot serve metrics there; choose another address with --http");
        let listener = TcpListener::bind(address).with_context(refused)?;
        listener.set_nonblocking(true).with_context(refused)?;
        let address = listener.local_addr().with_context(refused)?;
        let (running, ended) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start a runtime for metrics")?;
        let body = move || runtime.block_on(serve(listener, Watched { run_status, watcher }, ended));
        let thread = std::thread::Builder::new().name("http".into()).spawn(body);
        thread.context("cannot start a thread for metrics")?;
        Ok(Http { address, _running: running })
    }

    /// Where it listens, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn serve(listener: TcpListener, watched: Watched, ended: oneshot::Receiver<()>) {
    let pages =
        axum::Router::new().route("/metrics", get(metrics)).route("/health", get(health)).with_state(watched);
    let served = async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        axum::serve(listener, pages).await
    };
    tokio::select! {
        Err(error) = served => tracing::error!(%error, "metrics are no longer served"),
        _ = ended => {}
    }
}

async fn metrics(State(Watched { run_status, watcher }): State<Watched>) -> Response {
    match watcher.status().await {
        Some(fleet) => {
            let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
            (kind, exposition(&run_status.read(), &fleet)).into_response()
        }
        None => ending(),
    }
}

async fn health(State(Watched { watcher, .. }): State<Watched>) -> Response {
    match watcher.status().await {
        Some(_) => "ok\n".into_response(),
        None => ending(),
    }
}

fn ending() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the coordinator is about to end\n").into_response()
}
