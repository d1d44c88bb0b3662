//! The way to a coordinator: from its address to an open channel.
//!
//! In: URL, TLS. Out: a channel, and in [`Verdict`] whatever the connection shows of an identity that will never
//! do, even if it shows only after the channel is open (in TLS 1.3 a client learns that its certificate is not
//! accepted when it first reads). Invariant: each opening resolves the name again, so a coordinator may come back
//! elsewhere.

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
use tonic::transport::{Channel, Endpoint, Error, Uri};

use crate::tls::{self, ClientTls, Distrust};

/// How long a connection may take to come about.
pub const DIAL_WITHIN: Duration = Duration::from_secs(5);

/// What a connection shows of an identity that will never do; the first finding stays.
pub type Verdict = Arc<OnceLock<Distrust>>;

/// Why an address is not a way to a coordinator.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RouteError {
    /// Not an address.
    #[error("{url}: not the address of a coordinator, expected http://host:port or https://host:port")]
    Url {
        /// As given.
        url: String,
    },
    /// `https://`, and nobody to trust.
    #[error("{url}: whom to trust is not said; give the certificate of the coordinator's authority as --ca")]
    NoAuthority {
        /// As given.
        url: String,
    },
    /// Certificates, and no TLS to show them in.
    #[error("{url}: --ca, --cert and --key are for TLS; write https://, or leave them out")]
    Clear {
        /// As given.
        url: String,
    },
}

/// Where to dial and how; the address is checked.
#[derive(Clone)]
pub struct Route {
    endpoint: Endpoint,
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Route {
    /// Checks the address, and that it goes with the certificates.
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
        // TLS is ours; the channel only has to name the address as it was given.
        let endpoint = Endpoint::from_shared(format!("http://{authority}")).map_err(|_| not_one())?;
        let endpoint = endpoint
            .origin(uri.clone())
            .connect_timeout(DIAL_WITHIN)
            .http2_keep_alive_interval(crate::KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(crate::KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(crate::WINDOW)
            .initial_connection_window_size(crate::WINDOW);
        let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        Ok(Route { endpoint, host, port, tls })
    }

    /// Whether strangers may listen on the way: beyond loopback, and not encrypted.
    pub fn is_open(&self) -> bool {
        let is_loopback = |address: std::net::IpAddr| address.is_loopback();
        let loopback = self.host.parse().map_or(self.host == "localhost", is_loopback);
        !loopback && self.tls.is_none()
    }

    /// Connects. What is found out about identity, now or later, is in `verdict`.
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

/// A connection that notes what reading from it says about identity.
struct Observed {
    io: Box<dyn Stream>,
    verdict: Verdict,
    /// Plain, and nothing was read yet.
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

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
