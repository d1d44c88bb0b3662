//! Mutual TLS: authentication of coordinator and workers by certificates.
//!
//! In: PEM files. Out: [`ServerTls`] and [`ClientTls`]: each side shows its own certificate, and trusts certificates that
//! a given authority signed. When a handshake fails, [`Distrust::of`] distinguishes permanent errors (a wrong certificate
//! or address) from errors of the network.
//! Invariants: ring is the only provider of cryptography; the protocol inside is HTTP/2, except for [`https`]; a key is never
//! printed, not even by `Debug`. Certificates are read once, when the process starts.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore, ServerConfig};

use crate::secret;

/// First byte of a TLS connection: a handshake record.
pub const HANDSHAKE: u8 = 22;

/// First byte of a TLS peer that rejects a message: an alert record.
pub const ALERT: u8 = 21;

/// ALPN name of HTTP/2.
const HTTP2: &[u8] = b"h2";

/// ALPN name of HTTP/1.1, for browsers.
const HTTP1: &[u8] = b"http/1.1";

/// Installs ring as the process's provider of cryptography; each `main` begins with it.
///
/// Without it, rustls would panic if several providers are linked.
pub fn install_provider() {
    // An error means that a provider is installed already.
    let _ = ring::default_provider().install_default();
}

/// An error in the files of an identity or an authority.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file cannot be read.
    #[error("{}: cannot read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The file is not valid PEM.
    #[error("{}: broken PEM: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: pem::Error,
    },
    /// The file has no certificate.
    #[error("{}: no certificate in it, expected PEM (BEGIN CERTIFICATE)", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The file has no private key.
    #[error("{}: no private key in it, expected unencrypted PEM (BEGIN PRIVATE KEY)", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// Key and certificate do not belong together.
    #[error("{}: not the key of {}; give the two that were made together", key.display(), certificate.display())]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// A certificate that cannot be used.
    #[error("{}: unusable certificate: {detail}; make a new one", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Reason, as a line of text.
        detail: String,
    },
}

/// Files of an identity: a certificate chain, the own certificate first, and its key.
#[derive(Clone, Copy, Debug)]
pub struct IdentityFiles<'a> {
    /// The certificates.
    pub certificate: &'a Path,
    /// The key.
    pub key: &'a Path,
}

/// TLS settings of a coordinator.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    mutual: bool,
}

impl ServerTls {
    /// Reads the identity; if `clients` names an authority, clients must show a certificate signed by it.
    pub fn read(identity: IdentityFiles<'_>, clients: Option<&Path>) -> Result<ServerTls, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("ring has cipher suites for the versions that rustls thinks safe");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(authorities(path)?), provider)
                        .build()
                        .map_err(|error| TlsError::Unusable {
                            path: path.into(),
                            detail: error.to_string(),
                        })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let (certificates, key) = own(identity)?;
        let mut config =
            builder.with_single_cert(certificates, key).map_err(|error| identity_error(identity, &error))?;
        config.alpn_protocols = vec![HTTP2.to_vec()];
        Ok(ServerTls { config: Arc::new(config), mutual: clients.is_some() })
    }

    /// Whether clients must show a certificate.
    pub fn is_mutual(&self) -> bool {
        self.mutual
    }

    /// The settings in the form that rustls takes.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").field("mutual", &self.mutual).finish_non_exhaustive()
    }
}

/// TLS settings of a port for browsers: the same identity, HTTP/1.1 inside, and no client certificates.
pub fn https(identity: IdentityFiles<'_>) -> Result<Arc<ServerConfig>, TlsError> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has cipher suites for the versions that rustls thinks safe")
        .with_no_client_auth();
    let (certificates, key) = own(identity)?;
    let mut config =
        builder.with_single_cert(certificates, key).map_err(|error| identity_error(identity, &error))?;
    config.alpn_protocols = vec![HTTP1.to_vec()];
    Ok(Arc::new(config))
}

/// TLS settings of a worker or client.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
}

impl ClientTls {
    /// Reads the authority in `servers`, which must have signed the coordinator's certificate, and the identity to show.
    pub fn read(servers: &Path, identity: Option<IdentityFiles<'_>>) -> Result<ClientTls, TlsError> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has cipher suites for the versions that rustls thinks safe")
            .with_root_certificates(authorities(servers)?);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (certificates, key) = own(identity)?;
                let built = builder.with_client_auth_cert(certificates, key);
                built.map_err(|error| identity_error(identity, &error))?
            }
        };
        config.alpn_protocols = vec![HTTP2.to_vec()];
        Ok(ClientTls { config: Arc::new(config) })
    }

    /// The settings in the form that rustls takes.
    pub fn config(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").finish_non_exhaustive()
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = std::fs::read(path).map_err(|source| TlsError::Unreadable { path: path.into(), source })?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|source| TlsError::Malformed { path: path.into(), source })?;
    if found.is_empty() {
        return Err(TlsError::NoCertificate { path: path.into() });
    }
    Ok(found)
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError::Unusable { path: path.into(), detail: error.to_string() })?;
    }
    Ok(roots)
}

fn own(files: IdentityFiles<'_>) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let certificates = certificates(files.certificate)?;
    let path = || files.key.into();
    let text = secret::read(files.key).map_err(|source| TlsError::Unreadable { path: path(), source })?;
    let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|source| match source {
        pem::Error::NoItemsFound => TlsError::NoKey { path: path() },
        source => TlsError::Malformed { path: path(), source },
    })?;
    Ok((certificates, key))
}

fn identity_error(files: IdentityFiles<'_>, error: &rustls::Error) -> TlsError {
    match error {
        rustls::Error::InconsistentKeys(_) => {
            TlsError::Mismatch { certificate: files.certificate.into(), key: files.key.into() }
        }
        rustls::Error::General(_) => TlsError::NoKey { path: files.key.into() },
        other => TlsError::Unusable { path: files.certificate.into(), detail: other.to_string() },
    }
}

/// DNS and URI names in a peer's certificate; empty if it has none.
pub fn names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(certificate) = webpki::EndEntityCert::try_from(certificate) else { return Vec::new() };
    let hosts = certificate.valid_dns_names().map(str::to_owned);
    hosts.chain(certificate.valid_uri_names().map(str::to_owned)).collect()
}

/// A permanent error of authentication: dialing again cannot help.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Distrust {
    /// The certificate is signed by an unknown authority.
    #[error("its certificate is not signed by an authority that is trusted here (--ca)")]
    Foreign,
    /// The certificate has expired.
    #[error("its certificate has expired; make a new one")]
    Expired,
    /// The certificate is not valid yet.
    #[error("its certificate is not valid yet; look at the clocks of both machines")]
    NotYet,
    /// The certificate is for another host.
    #[error("its certificate is for {presented}, not for {expected}; dial it by a name in its certificate")]
    Name {
        /// The name that was dialed.
        expected: String,
        /// The names in the certificate.
        presented: String,
    },
    /// The certificate is invalid for another reason.
    #[error("its certificate is not accepted: {0}")]
    Certificate(String),
    /// The peer shows no certificate.
    #[error("it shows no certificate; give it --cert and --key")]
    Anonymous,
    /// The peer demands a certificate.
    #[error("it demands a certificate; give --cert and --key")]
    Demanding,
    /// The peer does not accept the certificate of this side.
    #[error("it does not accept the certificate of this side: {0}")]
    Rejected(String),
    /// No TLS version or cipher in common.
    #[error("no common version of TLS: {0}")]
    Incompatible(String),
    /// This side uses TLS and the peer does not.
    #[error("it does not speak TLS; dial it as http://, or give it --cert and --key")]
    Plain,
    /// This side uses plain HTTP and the peer uses TLS.
    #[error("it speaks TLS; dial it as https:// with --ca")]
    Encrypted,
}

impl Distrust {
    /// The permanent error of authentication among `error` and its causes, if there is one.
    pub fn of(error: &(dyn Error + 'static)) -> Option<Distrust> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(error) = error.downcast_ref::<rustls::Error>() {
                return Distrust::of_tls(error);
            }
            // `source` of an I/O error skips the error that it wraps, so that one is looked at first.
            next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                Some(within) => Some(within),
                None => error.source(),
            };
        }
        None
    }

    fn of_tls(error: &rustls::Error) -> Option<Distrust> {
        match error {
            rustls::Error::InvalidCertificate(error) => Some(Distrust::of_certificate(error)),
            rustls::Error::NoCertificatesPresented => Some(Distrust::Anonymous),
            rustls::Error::InvalidMessage(_) => Some(Distrust::Plain),
            rustls::Error::PeerIncompatible(_) | rustls::Error::NoApplicationProtocol => {
                Some(Distrust::Incompatible(error.to_string()))
            }
            rustls::Error::AlertReceived(alert) => Distrust::of_alert(*alert),
            _ => None,
        }
    }

    fn of_certificate(error: &CertificateError) -> Distrust {
        match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Distrust::Foreign,
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Distrust::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Distrust::NotYet,
            CertificateError::NotValidForNameContext { expected, presented } => Distrust::Name {
                expected: expected.to_str().into_owned(),
                presented: if presented.is_empty() { "no name".into() } else { presented.join(", ") },
            },
            other => Distrust::Certificate(other.to_string()),
        }
    }

    fn of_alert(alert: AlertDescription) -> Option<Distrust> {
        match alert {
            AlertDescription::CertificateRequired => Some(Distrust::Demanding),
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError
            | AlertDescription::AccessDenied => Some(Distrust::Rejected(format!("{alert:?}"))),
            AlertDescription::ProtocolVersion
            | AlertDescription::InsufficientSecurity
            | AlertDescription::HandshakeFailure
            | AlertDescription::NoApplicationProtocol => Some(Distrust::Incompatible(format!("{alert:?}"))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_authentication_are_found_in_any_chain_of_causes() {
        let foreign = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, foreign));
        assert_eq!(Distrust::of(&wrapped), Some(Distrust::Foreign));
        let demanding = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
        assert_eq!(Distrust::of(&io::Error::other(demanding)), Some(Distrust::Demanding));
        for trouble in
            [io::Error::from(io::ErrorKind::ConnectionReset), io::Error::other("tls handshake eof")]
        {
            assert_eq!(Distrust::of(&trouble), None);
        }
        let closing = rustls::Error::AlertReceived(AlertDescription::InternalError);
        assert_eq!(Distrust::of(&closing), None);
    }
}
