//! Downloads of result files, one by one or all in an archive.
//!
//! A path is valid if it is in the list of results; it is not looked up in the file system. All files are sent as attachments, except
//! `report.html`, which is shown in a sandbox with its own styles, the script of reports, and nothing else: the policy names the script by its hash.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use fleet::access::Identity;
use sha2::{Digest as _, Sha256};
use training::report::sentences::SCRIPT;

use super::{App, PageError, missing};
use crate::job_store::ResultFile;
use crate::outgoing::Outgoing;
use crate::permits::CallPermit;
use crate::record::JobId;

/// Name of the report.
pub const REPORT: &str = "report.html";
/// Name of the archive of all results.
pub const ARCHIVE: &str = "results.tar.gz";
/// Content security policy of the report.
static REPORT_POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
    format!(
        "sandbox allow-scripts; default-src 'none'; script-src 'sha256-{hash}'; style-src 'unsafe-inline'; img-src data:; \
         form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    )
});
/// Size of a read, in bytes.
const PIECE: usize = 64 << 10;
/// Maximum time between two reads of the client.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Sends the file at `path` of the results of a job to a user.
pub async fn send(app: &App, who: &Identity, job: JobId, path: String) -> Result<Response, PageError> {
    let Results { folder, files, place } = find(app, who, job, Some(path)).await?;
    let ResultFile { path, size, .. } = files.into_iter().next().ok_or_else(missing)?;
    let (outgoing, pieces) = Outgoing::new(TIMEOUT);
    let from = folder.join(&path);
    tokio::task::spawn_blocking(move || {
        let _place = place;
        if let Err(error) = outgoing.send_file(&from, size, PIECE, Ok) {
            outgoing.send(Err(error));
        }
    });
    let body = Body::from_stream(pieces);
    let size = [(header::CONTENT_LENGTH, size)];
    if path == REPORT {
        let kind = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CONTENT_SECURITY_POLICY, &REPORT_POLICY[..]),
        ];
        return Ok((size, kind, body).into_response());
    }
    let name: String = path.rsplit('/').next().unwrap_or_default().chars().map(plain).collect();
    let kept = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    Ok((size, kept, body).into_response())
}

/// Sends all results of a job to a user, as a compressed archive with a folder `job-ID`.
pub async fn send_archive(app: &App, who: &Identity, job: JobId) -> Result<Response, PageError> {
    let Results { folder, files, place } = find(app, who, job, None).await?;
    let (outgoing, pieces) = Outgoing::new(TIMEOUT);
    tokio::task::spawn_blocking(move || {
        let _place = place;
        let mut out = Pieces { outgoing: &outgoing, buffer: Vec::with_capacity(PIECE) };
        if let Err(error) = archive(&mut out, &format!("job-{job}"), &folder, &files) {
            outgoing.send(Err(error));
        }
    });
    let kept = [
        (header::CONTENT_TYPE, "application/gzip".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"job-{job}.tar.gz\"")),
    ];
    Ok((kept, Body::from_stream(pieces)).into_response())
}

/// Results of a job, and a place for their download.
struct Results {
    folder: PathBuf,
    files: Vec<ResultFile>,
    place: CallPermit,
}

/// Finds and checks the results of a job, or one of them. The place is held as long as the work, whether the client waits or not.
async fn find(app: &App, who: &Identity, job: JobId, path: Option<String>) -> Result<Results, PageError> {
    let place = app.downloads.take(&who.name).await.ok_or_else(PageError::busy)?;
    let found = app.blocking(move |service| {
        let (folder, mut files) = service.results(job)?;
        files.retain(|file| path.as_ref().is_none_or(|path| file.path == *path));
        files.iter().try_for_each(|file| file.check(&folder))?;
        Ok(Results { folder, files, place })
    });
    found.await.map_err(|error| if error.0.is_server_error() { error } else { missing() })
}

/// Writes an archive of `files` of `folder`, given by path and size, below a folder `name`.
fn archive(out: impl Write, name: &str, folder: &Path, files: &[ResultFile]) -> io::Result<()> {
    let mut archive = tar::Builder::new(GzEncoder::new(out, Compression::fast()));
    for ResultFile { path, size, .. } in files {
        let file = File::open(folder.join(path))?;
        let changed = file.metadata()?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut header = tar::Header::new_gnu();
        header.set_size(*size);
        header.set_mode(0o644);
        header.set_mtime(changed.as_secs());
        archive.append_data(&mut header, format!("{name}/{path}"), file.take(*size))?;
    }
    archive.into_inner()?.finish()?.flush()
}

/// A writer that sends what it gets in pieces.
struct Pieces<'a> {
    outgoing: &'a Outgoing<io::Result<Bytes>>,
    buffer: Vec<u8>,
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.buffer, Vec::with_capacity(PIECE));
        if self.outgoing.send(Ok(piece.into())) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }
}

/// Replaces a character that a header cannot carry.
fn plain(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || "._-+ ".contains(letter) { letter } else { '_' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_all_files_with_their_paths_and_bytes() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("model")).unwrap();
        let long = format!("model/{}.tsv", "long".repeat(40));
        let contents: [(&str, Vec<u8>); 3] =
            [("summary.json", b"{}".to_vec()), ("model/model.bin", vec![7; 200_000]), (&long, Vec::new())];
        let mut files = Vec::new();
        for (path, bytes) in &contents {
            std::fs::write(dir.path().join(path), bytes).unwrap();
            files.push(ResultFile { path: (*path).to_owned(), size: bytes.len() as u64, hash: None });
        }
        let mut written = Vec::new();
        archive(&mut written, "job-7", dir.path(), &files).unwrap();
        let mut unpacked = tar::Archive::new(flate2::read::GzDecoder::new(&written[..]));
        let read = |entry: io::Result<tar::Entry<'_, _>>| {
            let mut entry = entry.unwrap();
            let (path, mut bytes) = (entry.path().unwrap().display().to_string(), Vec::new());
            entry.read_to_end(&mut bytes).unwrap();
            (path, bytes)
        };
        let found: Vec<(String, Vec<u8>)> = unpacked.entries().unwrap().map(read).collect();
        let expected = contents.map(|(path, bytes)| (format!("job-7/{path}"), bytes));
        assert_eq!(found, expected);
    }
}
