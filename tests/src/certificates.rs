//! Certificates for tests, valid and invalid: an authority, and identities signed by it.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};

/// Period of validity of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Valid {
    /// Valid today.
    Now,
    /// Expired.
    Once,
    /// Not yet valid.
    Later,
}

/// An authority that signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// PEM files of an identity.
#[derive(Clone, Debug)]
pub struct Files {
    /// The certificate.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

impl Authority {
    /// Creates an authority with this name.
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("keys can be made");
        Authority(CertifiedIssuer::self_signed(params, key).expect("and sign themselves"))
    }

    /// Writes its certificate into `dir`.
    pub fn write(&self, dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(format!("{name}.pem"));
        std::fs::write(&path, self.0.pem()).expect("the folder can be written to");
        path
    }

    /// Writes an identity for the hosts `hosts` into `dir`.
    pub fn identity(&self, dir: &Path, name: &str, hosts: &[&str], valid: Valid) -> Files {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts).expect("hosts are names or addresses");
        let (from, to) = match valid {
            Valid::Now => (2020, 2120),
            Valid::Once => (2020, 2021),
            Valid::Later => (2119, 2120),
        };
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.signed_by(&key, &self.0).expect("and be signed");
        let files =
            Files { certificate: dir.join(format!("{name}.pem")), key: dir.join(format!("{name}.key")) };
        std::fs::write(&files.certificate, certificate.pem()).expect("the folder can be written to");
        std::fs::write(&files.key, key.serialize_pem()).expect("the folder can be written to");
        files
    }
}
