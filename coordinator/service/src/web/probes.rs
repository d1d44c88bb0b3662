//! The HTTP port of a run: `/metrics` for Prometheus, `/health` for probes without gRPC.
//!
//! In: requests, without authentication; the port is read-only. The server runs on a separate thread until it is dropped.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, Result};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fleet::Watcher;
use tokio::sync::oneshot;

use super::exposition::exposition;
use crate::status::RunStatus;

/// Serves until dropped.
pub struct Http {
    address: SocketAddr,
    /// Ends the thread when it is dropped.
    _running: oneshot::Sender<()>,
}

#[derive(Clone)]
struct RunState {
    run_status: RunStatus,
    watcher: Watcher,
}

impl Http {
    /// Listens at `address`; port 0 chooses a free port.
    pub fn start(address: SocketAddr, run_status: RunStatus, watcher: Watcher) -> Result<Http> {
        let refused = || format!("{address}: cannot serve metrics there; choose another address with --http");
        let listener = TcpListener::bind(address).with_context(refused)?;
        listener.set_nonblocking(true).with_context(refused)?;
        let address = listener.local_addr().with_context(refused)?;
        let (running, ended) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start a runtime for metrics")?;
        let body = move || runtime.block_on(serve(listener, RunState { run_status, watcher }, ended));
        let thread = std::thread::Builder::new().name("http".into()).spawn(body);
        thread.context("cannot start a thread for metrics")?;
        Ok(Http { address, _running: running })
    }

    /// Address that it listens on, with the chosen port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn serve(listener: TcpListener, state: RunState, ended: oneshot::Receiver<()>) {
    let pages =
        axum::Router::new().route("/metrics", get(metrics)).route("/health", get(health)).with_state(state);
    let served = async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        axum::serve(listener, pages).await
    };
    tokio::select! {
        Err(error) = served => tracing::error!(%error, "metrics are no longer served"),
        _ = ended => {}
    }
}

async fn metrics(State(RunState { run_status, watcher }): State<RunState>) -> Response {
    match watcher.status().await {
        Some(fleet) => {
            let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
            (kind, exposition(&run_status.read(), &fleet)).into_response()
        }
        None => ending(),
    }
}

async fn health(State(RunState { watcher, .. }): State<RunState>) -> Response {
    match watcher.status().await {
        Some(_) => "ok\n".into_response(),
        None => ending(),
    }
}

fn ending() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the coordinator is about to end\n").into_response()
}
