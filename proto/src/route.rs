//! Connecting to a coordinator: from its address to an open channel.
//!
//! In: URL and TLS settings. Out: a channel, and a [`Verdict`] with the first permanent error of authentication, even if
//! it occurs after the channel is open (in TLS 1.3 a client learns that its certificate is rejected when it first reads).
//! Invariant: each call of [`Route::open`] resolves the host name again, so a coordinator may restart at another address.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::Status;
use tonic::transport::{Channel, Endpoint, Error, Uri};

use crate::tls::{self, ClientTls, Distrust};

/// Timeout of opening a connection.
pub const DIAL_WITHIN: Duration = Duration::from_secs(5);

/// Whether a call ended because its connection broke off, which the library reports as a fault of HTTP/2.
pub fn is_broken_off(status: &Status) -> bool {
    status.message().starts_with("h2 protocol error")
}

/// Why a call ended, in words.
pub fn why_ended(status: &Status) -> String {
    if is_broken_off(status) {
        return "the other process was killed, or the network failed".to_owned();
    }
    status.message().to_owned()
}

/// Why a connection cannot be opened, in words: the innermost cause, as the library repeats it on every level.
pub fn why_not_open(error: &Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The first permanent error of authentication on a connection, if there was one.
pub type Verdict = Arc<OnceLock<Distrust>>;

/// An address and certificates that cannot reach a coordinator.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RouteError {
    /// The URL is not the address of a coordinator.
    #[error("{url}: not the address of a coordinator, expected http://host:port or https://host:port")]
    Url {
        /// The URL.
        url: String,
    },
    /// `https://` without the certificate of an authority.
    #[error(
        "{url}: https:// needs --ca; give the certificate of the authority that signed the coordinator's"
    )]
    NoAuthority {
        /// The URL.
        url: String,
    },
    /// Certificates for a URL without TLS.
    #[error("{url}: --ca, --cert and --key are for TLS; write https://, or leave them out")]
    Clear {
        /// The URL.
        url: String,
    },
}

/// A checked address and the TLS settings to dial it with.
#[derive(Clone)]
pub struct Route {
    endpoint: Endpoint,
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Route {
    /// Checks the address, and that certificates are given if and only if it is `https://`.
    pub fn new(url: &str, tls: Option<&ClientTls>) -> Result<Route, RouteError> {
        let not_one = || RouteError::Url { url: url.into() };
        let uri: Uri = url.parse().map_err(|_| not_one())?;
        let host = uri.host().map(|host| host.trim_matches(['[', ']']).to_owned());
        let (Some(host), Some(authority)) = (host, uri.authority()) else { return Err(not_one()) };
        let tls = match (uri.scheme_str(), tls) {
            (Some("http"), None) => None,
            (Some("http"), Some(_)) => return Err(RouteError::Clear { url: url.into() }),
            (Some("https"), None) => return Err(RouteError::NoAuthority { url: url.into() }),
            (Some("https"), Some(tls)) => {
                let name = ServerName::try_from(host.clone()).map_err(|_| not_one())?;
                Some((TlsConnector::from(tls.config()), name))
            }
            _ => return Err(not_one()),
        };
        // The connector below does TLS itself, so the channel gets an http:// URL with the original authority.
        let endpoint = Endpoint::from_shared(format!("http://{authority}")).map_err(|_| not_one())?;
        let endpoint = endpoint
            .origin(uri.clone())
            .connect_timeout(DIAL_WITHIN)
            .http2_keep_alive_interval(crate::KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(crate::KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .max_frame_size(crate::FRAME)
            .initial_stream_window_size(crate::WINDOW)
            .initial_connection_window_size(crate::WINDOW);
        let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        Ok(Route { endpoint, host, port, tls })
    }

    /// Whether the connection can be eavesdropped: beyond loopback, and not encrypted.
    pub fn is_open(&self) -> bool {
        let is_loopback = |address: std::net::IpAddr| address.is_loopback();
        let loopback = self.host.parse().map_or(self.host == "localhost", is_loopback);
        !loopback && self.tls.is_none()
    }

    /// Connects. `verdict` receives a permanent error of authentication, now or later.
    pub async fn open(&self, verdict: &Verdict) -> Result<Channel, Error> {
        let (route, verdict) = (self.clone(), verdict.clone());
        let connect = move |_: Uri| {
            let (route, verdict) = (route.clone(), verdict.clone());
            async move { route.connect(verdict).await.map(TokioIo::new) }
        };
        self.endpoint.connect_with_connector(tower::service_fn(connect)).await
    }

    async fn connect(&self, verdict: Verdict) -> io::Result<Observed> {
        let tcp = TcpStream::connect((&self.host[..], self.port)).await?;
        tcp.set_nodelay(true)?;
        let Some((connector, name)) = &self.tls else {
            return Ok(Observed { io: Box::new(tcp), verdict, unheard: true });
        };
        match connector.connect(name.clone(), tcp).await {
            Ok(tls) => Ok(Observed { io: Box::new(tls), verdict, unheard: false }),
            Err(error) => {
                note(&verdict, Distrust::of(&error));
                Err(error)
            }
        }
    }
}

fn note(verdict: &Verdict, distrust: Option<Distrust>) {
    if let Some(distrust) = distrust {
        // The first finding stays.
        let _ = verdict.set(distrust);
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection that stores a permanent error of authentication when a read fails with one.
struct Observed {
    io: Box<dyn Stream>,
    verdict: Verdict,
    /// Whether the connection is plain and nothing has been read yet.
    unheard: bool,
}

impl AsyncRead for Observed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.io).poll_read(cx, buffer));
        match &read {
            Err(error) => note(&self.verdict, Distrust::of(error)),
            Ok(()) if std::mem::take(&mut self.unheard) => {
                let encrypted = buffer.filled().get(before) == Some(&tls::ALERT);
                note(&self.verdict, encrypted.then_some(Distrust::Encrypted));
            }
            Ok(()) => {}
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Observed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
