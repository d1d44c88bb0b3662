//! Downloads of result files.
//!
//! A path is valid if it is in the list of results; it is not looked up in the file system. All files are sent as attachments, except
//! `report.html`, which is shown in a sandbox with its own styles and nothing else.

use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::{App, PageError, missing};
use crate::access::Identity;
use crate::service::outgoing::Outgoing;
use crate::service::record::JobId;

/// Name of the report.
pub const REPORT: &str = "report.html";
/// Content security policy of the report.
const REPORT_POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; \
                             frame-ancestors 'none'; base-uri 'none'";
/// Size of a read, in bytes.
const PIECE: usize = 64 << 10;
/// Maximum time between two reads of the client.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Sends the file at `path` of the results of a job to a user.
pub async fn send(app: &App, who: &Identity, job: JobId, path: String) -> Result<Response, PageError> {
    let place = app.downloads.take(&who.name).await.ok_or_else(PageError::busy)?;
    // The place is held as long as the work, whether the client waits or not.
    let results = app.blocking(move |service| Ok((service.results(job)?, place))).await;
    let ((folder, files), place) = results.map_err(|_| missing())?;
    let (path, size) = files.into_iter().find(|(name, _)| *name == path).ok_or_else(missing)?;
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
            (header::CONTENT_SECURITY_POLICY, REPORT_POLICY),
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

/// Replaces a character that a header cannot carry.
fn plain(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || "._-+ ".contains(letter) { letter } else { '_' }
}
