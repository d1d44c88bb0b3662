//! The handshake: connections from the first byte to the hello.
//!
//! In: a listener. Out: connections that speak HTTP/2, through TLS if there is a certificate, for the services
//! to serve; each with its [`Visitor`]. Invariants: at most [`MAX_UNKNOWN`](crate::connection_limits::MAX_UNKNOWN) connections are of unknown peers, and the
//! oldest of these gives way to a new one; none stays longer than [`STAY`]; a connection costs no more than a
//! socket until its first bytes are those of the right protocol; if the system has no more sockets (too many open
//! files), accepting pauses and connections stay.
//!
//! ```text
//!     accepted ──first byte──> [TLS handshake] ──> served ──welcomed──> member's ──left──> closed
//!        └────────────── unknown peer ──────────────┘
//! ```
//!
//! A peer that speaks the wrong protocol, or fails the handshake, is answered in a way that its side understands,
//! so that it can say what is wrong.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use proto::tls::{self, Distrust, ServerTls};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsAcceptor;
use tonic::transport::server::Connected;
use tracing::{Instrument as _, info, warn};

use crate::access::{Denied, Identity};
use crate::connection_limits::{ConnectionLimits, ConnectionSlot};
use scheduler::Machine;

/// Timeout of a connection that belongs to no member; probes take less.
const STAY: Duration = Duration::from_secs(60);

/// Timeout of the first byte and the TLS handshake together.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// Timeout for telling a refused peer the reason.
const LINGER: Duration = Duration::from_secs(1);

/// Pause when the operating system has no more sockets.
const RECOVER: Duration = Duration::from_millis(100);

/// First byte of HTTP/2: `PRI * HTTP/2.0`.
const PREFACE: u8 = b'P';

/// Reply to a TLS peer that means "not TLS", also for a reader.
const PLAIN_HERE: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-length: 34\r\n\r\nthis port speaks gRPC without TLS\n";

/// Reply to a peer that speaks plain HTTP: the fatal TLS alert "protocol version".
const TLS_HERE: &[u8] = &[tls::ALERT, 3, 3, 0, 2, 2, 70];

/// Accepts connections until the runtime ends, or the fleet takes no more.
pub(super) async fn keep(
    listener: TcpListener,
    tls: Option<ServerTls>,
    inside: mpsc::Sender<io::Result<Connection>>,
) {
    let acceptor = tls.map(|tls| TlsAcceptor::from(tls.config()));
    let limits = ConnectionLimits::default();
    while !inside.is_closed() {
        let (tcp, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!(%error, "cannot take a connection");
                tokio::time::sleep(RECOVER).await;
                continue;
            }
        };
        let (place, eviction) = limits.enter(peer.ip());
        let (acceptor, inside) = (acceptor.clone(), inside.clone());
        let arrive = async move {
            let mut eviction: Eviction = Box::pin(evicted(eviction, Arc::downgrade(&place)));
            let quiet = place.clone();
            let shaken = tokio::select! {
                shaken = tokio::time::timeout(HANDSHAKE_WITHIN, shake(tcp, acceptor)) => shaken,
                () = &mut eviction => return,
            };
            match shaken {
                Ok(Ok((io, certificate))) => {
                    let visitor = Visitor { peer, certificate, place };
                    // An error means that the fleet has stopped.
                    let _ = inside.send(Ok(Connection { io, visitor, eviction: Some(eviction) })).await;
                }
                Ok(Err(_)) | Err(_) if !quiet.may_log() => {}
                Ok(Err(TurnedAway::Distrusted(why))) => {
                    warn!(%peer, "a peer was turned away: {why}");
                }
                Ok(Err(TurnedAway::Confused(why))) => info!(%peer, "a peer was turned away: {why}"),
                Err(_) => info!(%peer, "a peer was turned away: it said nothing of use"),
            }
        };
        tokio::spawn(arrive.in_current_span());
    }
}

/// Why a connection was closed in the handshake.
enum TurnedAway {
    /// One side does not trust the certificate of the other.
    Distrusted(String),
    /// The peer speaks another protocol, or broke off.
    Confused(String),
}

impl From<io::Error> for TurnedAway {
    fn from(error: io::Error) -> TurnedAway {
        TurnedAway::Confused(error.to_string())
    }
}

/// Performs the handshake. Returns a connection that speaks HTTP/2, and the names in the peer's certificate.
async fn shake(
    tcp: TcpStream,
    acceptor: Option<TlsAcceptor>,
) -> Result<(Box<dyn Stream>, Option<String>), TurnedAway> {
    tcp.set_nodelay(true)?;
    let mut first = [0];
    if tcp.peek(&mut first).await? == 0 {
        return Err(TurnedAway::Confused("it hung up".into()));
    }
    let Some(acceptor) = acceptor else {
        return match first[0] {
            PREFACE => Ok((Box::new(tcp), None)),
            tls::HANDSHAKE => {
                dismiss(tcp, PLAIN_HERE).await;
                Err(TurnedAway::Distrusted("it speaks TLS, and this side has no certificate (--cert)".into()))
            }
            _ => {
                dismiss(tcp, PLAIN_HERE).await;
                Err(TurnedAway::Confused("it does not speak HTTP/2".into()))
            }
        };
    };
    if first[0] != tls::HANDSHAKE {
        dismiss(tcp, TLS_HERE).await;
        return Err(match first[0] {
            PREFACE => TurnedAway::Distrusted("it does not speak TLS; dial https:// with --ca".into()),
            _ => TurnedAway::Confused("it does not speak TLS".into()),
        });
    }
    match acceptor.accept(tcp).into_fallible().await {
        Ok(tls) => {
            let certificate = tls.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            let names = certificate.map(|certificate| tls::names(certificate).join(", "));
            Ok((Box::new(tls), names))
        }
        Err((error, tcp)) => {
            // The alert has been written; a connection closed over unread bytes would be reset before it is read.
            dismiss(tcp, &[]).await;
            Err(match Distrust::of(&error) {
                Some(distrust) => TurnedAway::Distrusted(distrust.to_string()),
                None => TurnedAway::Confused(error.to_string()),
            })
        }
    }
}

/// Sends a last reply, and closes the connection once the peer has had the time to read it.
async fn dismiss(mut tcp: TcpStream, words: &[u8]) {
    let farewell = async {
        tcp.write_all(words).await?;
        tcp.shutdown().await?;
        let mut ignored = [0; 1024];
        while tcp.read(&mut ignored).await? > 0 {}
        io::Result::Ok(())
    };
    // A peer that is gone, or says more than it hears, need not be waited for.
    let _ = tokio::time::timeout(LINGER, farewell).await;
}

type Eviction = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Waits until the connection has to be closed: on request, or because it belongs to no member for too long.
async fn evicted(mut eviction: oneshot::Receiver<()>, place: Weak<ConnectionSlot>) {
    tokio::select! {
        _ = &mut eviction => return,
        () = tokio::time::sleep(STAY) => {}
    }
    let overdue = place.upgrade().is_none_or(|place| place.leave());
    if !overdue {
        // It belongs to a member: until that one leaves.
        let _ = eviction.await;
    }
}

/// The known identity of a connection's peer.
#[derive(Clone)]
pub struct Visitor {
    /// Its address.
    pub peer: SocketAddr,
    /// The names in its certificate, if it showed one.
    pub certificate: Option<String>,
    place: Arc<ConnectionSlot>,
}

impl Visitor {
    /// Machine of the peer with the token of that name: the names in its certificate, or else its address and its token.
    pub fn machine(&self, token: &str) -> Machine {
        match &self.certificate {
            Some(names) => Machine::certified(names),
            None => Machine(format!("{} with token {token}", self.peer.ip()).into()),
        }
    }

    /// Marks the connection as a member's.
    pub fn admit(&self) {
        self.place.leave();
    }

    /// Marks the connection as a user's.
    pub fn admit_user(&self, name: &str) {
        self.place.admit(name);
    }

    /// Returns what `admit` says of a token, unless too many wrong ones came from the peer's address.
    pub fn admit_token(
        &self,
        header: Option<&str>,
        admit: impl FnOnce() -> Result<Identity, Denied>,
    ) -> Result<Identity, Denied> {
        self.place.admit_token(header, admit)
    }

    /// Whether a line about the peer may go into the log.
    pub fn may_log(&self) -> bool {
        self.place.may_log()
    }

    /// Closes the connection.
    pub fn dismiss(&self) {
        self.place.evict();
    }
}

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection that can be closed from this side at any time.
pub(super) struct Connection {
    io: Box<dyn Stream>,
    visitor: Visitor,
    /// `None` once it has happened.
    eviction: Option<Eviction>,
}

impl Connected for Connection {
    type ConnectInfo = Visitor;

    fn connect_info(&self) -> Visitor {
        self.visitor.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(eviction) = &mut self.eviction
            && eviction.as_mut().poll(cx).is_ready()
        {
            self.eviction = None;
        }
        if self.eviction.is_none() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
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
