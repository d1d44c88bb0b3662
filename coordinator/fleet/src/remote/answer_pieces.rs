//! Answers that arrive in pieces.
//!
//! In: the head of an answer and its pieces. Out: the bytes with their task. Bytes of an answer to a batch that is over are counted and dropped.

use std::sync::Arc;
use std::time::Duration;

use basics::clock;
use grammaton::work::lease::LeaseId;
use grammaton::work::task::Task;
use prost::bytes::Bytes;
use proto::payload::{self, Assembly, Progress};
use proto::v1;
use tokio::sync::OwnedSemaphorePermit;

use super::breach::Breach;

/// Maximum size of the arriving answers of all members, in bytes. It is that of the largest payload, so that every answer finds room in
/// the end, and a thousand members cannot exhaust the memory.
pub const ROOM: u64 = payload::MAX_PAYLOAD;

/// Unit in which [`ROOM`] is allotted, in bytes.
pub const CELL: u64 = 1 << 10;

/// Time for an answer to arrive, besides the time for its bytes.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Minimum transfer rate of answers in bytes a second: 2 Mbit/s. A slower answer would hold up others.
const SLOWEST: u64 = 256 << 10;

/// An answer that is arriving in pieces.
pub struct Arriving {
    pub lease: LeaseId,
    pub busy: Duration,
    pub body: Body,
    /// Released when the answer has reached the driver.
    #[expect(dead_code, reason = "held, not read")]
    pub room: Option<OwnedSemaphorePermit>,
    /// Deadline of its last piece.
    pub due: tokio::time::Instant,
}

/// The bytes of an arriving answer.
pub enum Body {
    /// An answer to an open task.
    Wanted { task: Arc<Task>, assembly: Assembly },
    /// An answer to a finished batch; its bytes are discarded as they arrive.
    Unwanted { left: u64 },
    /// A complete answer.
    Whole,
}

/// State of an answer after a head or a piece.
pub enum Step {
    Partial,
    /// A complete answer with its task; `None` if its batch is over.
    Whole(Option<(Arc<Task>, Bytes)>),
}

impl Arriving {
    pub fn push(&mut self, piece: &v1::Piece) -> Result<Step, Breach> {
        let lease = self.lease;
        match std::mem::replace(&mut self.body, Body::Whole) {
            Body::Wanted { task, assembly } => {
                match assembly.push(piece).map_err(|error| Breach::Payload(lease, error))? {
                    Progress::Partial(assembly) => {
                        self.body = Body::Wanted { task, assembly };
                        Ok(Step::Partial)
                    }
                    Progress::Whole(bytes) => Ok(Step::Whole(Some((task, bytes)))),
                }
            }
            Body::Unwanted { left } => match left.checked_sub(piece.data.len() as u64) {
                None => Err(Breach::TooLong(lease)),
                Some(0) => Ok(Step::Whole(None)),
                Some(_) if piece.data.is_empty() => Err(Breach::EmptyPiece(lease)),
                Some(left) => {
                    self.body = Body::Unwanted { left };
                    Ok(Step::Partial)
                }
            },
            Body::Whole => Err(Breach::Order),
        }
    }
}

/// Deadline of an answer of that size.
pub fn due(size: u64) -> tokio::time::Instant {
    let time = ANSWER_WITHIN + Duration::from_secs(size.min(ROOM) / SLOWEST);
    clock::instant().checked_add(time).unwrap_or_else(clock::instant).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_of_an_answer_grows_with_its_size() {
        let now = clock::instant();
        let after = |size| due(size).into_std().duration_since(now).as_secs();
        assert!((60..70).contains(&after(0)));
        assert!((64..74).contains(&after(1 << 20)));
        assert!(after(u64::MAX) < 2 * 3600);
    }
}
