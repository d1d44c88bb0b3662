//! The audit: who did what, a line each, in a file that only grows.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::record::{JobId, Millis};

/// The file.
pub struct Audit(File);

#[derive(Serialize)]
struct Entry<'a> {
    millis: Millis,
    who: &'a str,
    what: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<JobId>,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
}

impl Audit {
    /// Adds to the file at `path`.
    pub fn open(path: &Path) -> Result<Audit> {
        let file = File::options().create(true).append(true).open(path);
        Ok(Audit(file.with_context(|| format!("{}: cannot be written", path.display()))?))
    }

    /// One more line, which is also logged.
    pub fn note(&self, millis: Millis, who: &str, what: &str, job: Option<JobId>, detail: &str) {
        tracing::info!(target: "audit", who, what, job = job.map(|job| job.0), detail);
        let mut line = serde_json::to_vec(&Entry { millis, who, what, job, detail }).unwrap_or_default();
        line.push(b'\n');
        // The file is open to append, so that lines of several threads do not mix.
        if let Err(error) = (&self.0).write_all(&line) {
            tracing::error!(%error, who, what, "cannot write to the audit log");
        }
    }
}
