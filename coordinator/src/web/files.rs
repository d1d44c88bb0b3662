//! Files of results, for whoever wants to keep them.
//!
//! A path is good if it is one of those that the results are made of; nothing is looked for by it. All are sent to be kept, and none to be
//! shown, but for `report.html`: that may show its own styles, in a sandbox, and nothing else.

use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::{House, Oops, missing};
use crate::service::outgoing::Outgoing;
use crate::service::record::JobId;

/// The page that tells how a job went.
pub const REPORT: &str = "report.html";
/// What a browser may do with it.
const REPORT_POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; \
                             frame-ancestors 'none'; base-uri 'none'";
/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;
/// How long a reader may take to read a little more.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The file at `path` among the results of a job.
pub async fn send(house: &House, job: JobId, path: String) -> Result<Response, Oops> {
    let (folder, files) = house.blocking(move |service| service.results(job)).await.map_err(|_| missing())?;
    let (path, size) = files.into_iter().find(|(name, _)| *name == path).ok_or_else(missing)?;
    let place = house.downloads.clone().acquire_owned().await; // never closed
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

/// A letter that a header can carry.
fn plain(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || "._-+ ".contains(letter) { letter } else { '_' }
}
