//! The audit: who did what, a line each, in a file that only grows.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

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
    /// Bytes of an upload.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

/// An upload that succeeded.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Upload {
    /// Time.
    pub millis: Millis,
    /// Name of the user.
    pub who: String,
    /// Its size.
    pub bytes: u64,
}

impl Audit {
    /// Adds to the file at `path`.
    pub fn open(path: &Path) -> Result<Audit> {
        let file = File::options().create(true).append(true).open(path);
        Ok(Audit(file.with_context(|| format!("{}: cannot be written", path.display()))?))
    }

    /// Adds a line, which is also logged.
    pub fn note(&self, millis: Millis, who: &str, what: &str, job: Option<JobId>, detail: &str) {
        self.add(&Entry { millis, who, what, job, detail, bytes: None });
    }

    /// A line for an upload, which counts towards the user's quota ([`uploads`]).
    pub fn note_upload(&self, millis: Millis, who: &str, bytes: u64, detail: &str) {
        self.add(&Entry { millis, who, what: "upload", job: None, detail, bytes: Some(bytes) });
    }

    fn add(&self, entry: &Entry<'_>) {
        let Entry { who, what, job, detail, .. } = *entry;
        tracing::info!(target: "audit", who, what, job = job.map(|job| job.0), detail);
        let mut line = serde_json::to_vec(entry).unwrap_or_default();
        line.push(b'\n');
        // The file is open to append, so that lines of several threads do not mix.
        if let Err(error) = (&self.0).write_all(&line) {
            tracing::error!(%error, who, what, "cannot write to the audit log");
        }
    }
}

/// The uploads since a moment, by the audit at `path`. Lines that cannot be read, or are half written, are left out.
pub fn uploads(path: &Path, since: Millis) -> io::Result<Vec<Upload>> {
    let lines = BufReader::new(File::open(path)?).split(b'\n');
    let mut found = Vec::new();
    for line in lines {
        // Of all lines those of uploads alone have a number of bytes.
        let upload = serde_json::from_slice::<Upload>(&line?).ok();
        found.extend(upload.filter(|upload| upload.millis >= since));
    }
    Ok(found)
}
