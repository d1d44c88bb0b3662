//! Connections of browsers: how many there are, how long they may take, and TLS.
//!
//! In: a listener. Out: requests for the routes, each with the address that it comes from. Invariants: there are at most
//! [`CONNECTIONS`] at a time; who is slow to shake hands, to ask, or to read the answer is hung up on; a head of more than [`HEAD`] bytes is
//! not read to its end.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

/// Connections at a time; others wait.
const CONNECTIONS: usize = 512;
/// Bytes of what stands before a body.
const HEAD: usize = 16 << 10;
/// How long shaking hands may take, and each head; and how long a connection may be of no use.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a peer may take nothing of what is sent.
const STUCK: Duration = Duration::from_secs(30);
/// How long to wait when the operating system has no more sockets.
const RECOVER: Duration = Duration::from_millis(100);

/// Serves until the runtime ends.
pub async fn serve(listener: TcpListener, tls: Option<Arc<ServerConfig>>, routes: Router) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let acceptor = tls.map(TlsAcceptor::from);
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return Ok(()) };
        match listener.accept().await {
            Ok((tcp, peer)) => {
                tokio::spawn(talk(tcp, peer, acceptor.clone(), routes.clone(), place));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot take a connection");
                tokio::time::sleep(RECOVER).await;
            }
        }
    }
}

async fn talk(
    tcp: TcpStream,
    peer: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    routes: Router,
    _place: OwnedSemaphorePermit,
) {
    let _ = tcp.set_nodelay(true);
    let talked = match acceptor {
        None => answer(tcp, peer, routes).await,
        Some(acceptor) => match tokio::time::timeout(TIMEOUT, acceptor.accept(tcp)).await {
            Ok(Ok(stream)) => answer(stream, peer, routes).await,
            Ok(Err(error)) => Err(error.into()),
            Err(_) => return,
        },
    };
    if let Err(error) = talked {
        debug!(%peer, error, "a connection has ended");
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    routes: Router,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let routes = routes.layer(axum::Extension(peer));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(TIMEOUT)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(Watched { stream, stuck: None }), TowerToHyperService::new(routes))
        .await?;
    Ok(())
}

/// A stream whose peer has to take what is sent, in time.
struct Watched<S> {
    stream: S,
    /// Ends when it has taken nothing for too long.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> Watched<S> {
    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(STUCK)));
        match stuck.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, shut)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}
