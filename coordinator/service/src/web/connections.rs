//! Connections of browsers: limits, timeouts and TLS.
//!
//! In: a listener. Out: requests for the routes, each with the address of its peer. Invariants: there are at most [`CONNECTIONS`]
//! at the same time; of those without a request of a user, and of those of one user, the oldest gives way to a new one ([`ConnectionLimits`]). A connection
//! is closed if the handshake, the request, or reading the response is slow, or if the head of a request exceeds [`HEAD`] bytes.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use fleet::connection_limits::{ConnectionLimits, ConnectionSlot};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

/// Maximum number of connections at the same time; others wait.
const CONNECTIONS: usize = 2048;
/// Maximum size of the head of a request, in bytes.
const HEAD: usize = 16 << 10;
/// Timeout of the handshake and of each request head; maximum idle time of a connection.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time in which a peer accepts no bytes of a response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause when the operating system has no more sockets.
const RECOVER: Duration = Duration::from_millis(100);

/// Serves until the runtime ends.
pub async fn serve(listener: TcpListener, tls: Option<Arc<ServerConfig>>, routes: Router) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let acceptor = tls.map(TlsAcceptor::from);
    let limits = ConnectionLimits::default();
    loop {
        let Ok(permit) = places.clone().acquire_owned().await else { return Ok(()) };
        match listener.accept().await {
            Ok((tcp, peer)) => {
                let (acceptor, routes) = (acceptor.clone(), routes.clone());
                let (place, eviction) = limits.enter(peer.ip());
                tokio::spawn(async move {
                    let _permit = permit;
                    tokio::select! {
                        () = talk(tcp, peer, acceptor, routes, place.clone()) => {}
                        _ = eviction => {}
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
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
    place: Arc<ConnectionSlot>,
) {
    let _ = tcp.set_nodelay(true);
    let talked = match acceptor {
        None => answer(tcp, peer, routes, place).await,
        Some(acceptor) => match tokio::time::timeout(TIMEOUT, acceptor.accept(tcp)).await {
            Ok(Ok(stream)) => answer(stream, peer, routes, place).await,
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
    place: Arc<ConnectionSlot>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let routes = routes.layer(axum::Extension(peer)).layer(axum::Extension(place));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(TIMEOUT)
        // hyper panics over a clock that shows a time before 1970.
        .auto_date_header(false)
        .max_buf_size(HEAD)
        .serve_connection(
            TokioIo::new(TimedWrites { stream, timeout: None }),
            TowerToHyperService::new(routes),
        )
        .await?;
    Ok(())
}

/// A stream with a timeout of writes.
struct TimedWrites<S> {
    stream: S,
    /// Timeout while a write is pending.
    timeout: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> TimedWrites<S> {
    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.timeout = None;
            return written;
        }
        let timeout = self.timeout.get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE_TIMEOUT)));
        match timeout.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedWrites<S> {
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

impl<S: AsyncRead + Unpin> AsyncRead for TimedWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use axum::Extension;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use fleet::connection_limits::MAX_UNKNOWN;

    use super::*;

    /// However many connections say nothing, or ask for public pages alone: a request of a user is answered while they are open, the oldest of
    /// them are closed, and the connection of a user is not.
    #[tokio::test]
    async fn connections_of_unknown_peers_keep_no_user_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let of_user = async |Extension(place): Extension<Arc<ConnectionSlot>>| {
            place.admit("ann");
            "here"
        };
        let routes = Router::new().route("/", get(of_user)).route("/login", get(async || "here"));
        tokio::spawn(serve(listener, None, routes));
        let ask = async |connection: &mut TcpStream, path: &str| {
            let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
            connection.write_all(request.as_bytes()).await.unwrap();
            let (mut text, mut piece) = (String::new(), [0; 1024]);
            while !text.ends_with("here") {
                let n = connection.read(&mut piece).await.unwrap();
                assert!(n > 0, "closed after {text:?}");
                text.push_str(std::str::from_utf8(&piece[..n]).unwrap());
            }
        };
        let mut known = TcpStream::connect(address).await.unwrap();
        ask(&mut known, "/").await;
        let mut unknown = Vec::new();
        for at in 0..MAX_UNKNOWN + 50 {
            let mut peer = TcpStream::connect(address).await.unwrap();
            if at % 2 == 0 {
                ask(&mut peer, "/login").await;
            }
            unknown.push(peer);
        }
        for oldest in &mut unknown[..50] {
            assert_eq!(oldest.read(&mut [0]).await.unwrap(), 0, "the oldest are closed");
        }
        ask(&mut TcpStream::connect(address).await.unwrap(), "/").await;
        ask(&mut known, "/").await;
        let open = unknown[51..].iter().filter(|unknown| unknown.try_read(&mut [0]).is_err()).count();
        assert_eq!(open, unknown.len() - 51, "the newest are still open");
    }
}
