//! Arguments of commands about a service.

use std::path::PathBuf;

use anyhow::{Result, bail};
use client::connection::{Jobs, Way, runtime};
use proto::tls::{ClientTls, IdentityFiles};
use proto::token::Token;
use tonic::Status;

/// Address of the service, and credentials.
#[derive(clap::Args, Clone, Debug)]
pub struct Reach {
    /// Address of the service, as http://host:port, or https://host:port with --ca
    #[arg(help_heading = "Service", long, value_name = "URL", env = "GRAMMATON_COORDINATOR")]
    pub coordinator: Option<String>,
    /// File with a token of the service [default: the variable GRAMMATON_TOKEN]
    #[arg(help_heading = "Security", long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificate (PEM) of the authority that signed the service's certificate
    #[arg(help_heading = "Security", long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Certificate (PEM) to show to a service that demands one
    #[arg(help_heading = "Security", long, value_name = "FILE", requires_all = ["ca", "key"])]
    pub cert: Option<PathBuf>,
    /// Private key (PEM) of --cert
    #[arg(help_heading = "Security", long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}

impl Reach {
    /// Checks the arguments; `url` replaces --coordinator.
    pub fn way(&self, url: Option<&str>) -> Result<Way> {
        let Some(url) = url.or(self.coordinator.as_deref()) else {
            bail!("no service given; give its address with --coordinator URL, or in GRAMMATON_COORDINATOR");
        };
        let identity = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => Some(IdentityFiles { certificate, key }),
            _ => None,
        };
        let tls = self.ca.as_deref().map(|ca| ClientTls::read(ca, identity)).transpose()?;
        Way::new(url, tls.as_ref(), Token::find(self.token_file.as_deref())?)
    }

    /// Runs `call` with a client of the service, on a new runtime.
    pub fn ask<T>(&self, call: impl AsyncFnOnce(&mut Jobs) -> Result<T, Status>) -> Result<T> {
        let way = self.way(None)?;
        runtime()?.block_on(way.ask(call))
    }
}
