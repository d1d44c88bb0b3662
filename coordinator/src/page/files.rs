//! Files of results, for whoever wants to keep them.
//!
//! A path is good if it is one of those that the results are made of; nothing is looked for by it. All are sent to be kept, and none to be
//! shown, but for `report.html`: that may show its own styles, in a sandbox, and nothing else.

use std::io::Read;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use prost::bytes::Bytes;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::{House, Oops, missing};
use crate::service::record::JobId;

/// The page that tells how a job went.
pub const REPORT: &str = "report.html";
/// What a browser may do with it.
const REPORT_POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; \
                             frame-ancestors 'none'; base-uri 'none'";
/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;
/// Pieces that may wait for a slow reader.
const UNDER_WAY: usize = 4;

/// The file at `path` among the results of a job.
pub async fn send(house: &House, job: JobId, path: String) -> Result<Response, Oops> {
    let (folder, files) = house.blocking(move |service| service.results(job)).await.map_err(|_| missing())?;
    let (path, size) = files.into_iter().find(|(name, _)| *name == path).ok_or_else(missing)?;
    let place = house.downloads.clone().acquire_owned().await; // never closed
    let (pieces, stream) = mpsc::channel::<std::io::Result<Bytes>>(UNDER_WAY);
    let from = folder.join(&path);
    tokio::task::spawn_blocking(move || {
        let _place = place;
        let mut file = match std::fs::File::open(from) {
            Ok(file) => file.take(size),
            Err(error) => return drop(pieces.blocking_send(Err(error))),
        };
        loop {
            let mut piece = Vec::with_capacity(PIECE);
            match (&mut file).take(PIECE as u64).read_to_end(&mut piece) {
                Ok(0) => return,
                Ok(_) if pieces.blocking_send(Ok(piece.into())).is_err() => return, // the reader has gone
                Ok(_) => {}
                Err(error) => return drop(pieces.blocking_send(Err(error))),
            }
        }
    });
    let body = Body::from_stream(ReceiverStream::new(stream));
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
