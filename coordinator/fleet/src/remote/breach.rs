//! Breaches of the protocol by a worker. In the log and in the report of a batch, a breach is a line of text.

use grammaton::work::lease::LeaseId;
use proto::check::Invalid;
use proto::payload::PayloadError;

/// A worker's breach of the protocol, which ends its connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum Breach {
    /// A message that may not come at this point.
    #[error("a message out of order")]
    Order,
    /// An invalid field outside of the bytes of an answer.
    #[error(transparent)]
    Field(#[from] Invalid),
    /// An answer whose bytes have the wrong number or the wrong checksum.
    #[error("answer {0}: {1}")]
    Payload(LeaseId, PayloadError),
    /// An answer whose bytes do not decode, or do not fit its task.
    #[error("answer {0}: {1}")]
    Answer(LeaseId, Invalid),
    /// An answer with more bytes than its head declares.
    #[error("answer {0}: more bytes than were declared")]
    TooLong(LeaseId),
    /// A piece of an answer without bytes.
    #[error("answer {0}: an empty piece")]
    EmptyPiece(LeaseId),
    /// An answer whose worker keeps more of it than its task allows.
    #[error("answer {0}: more is kept than was assigned")]
    Kept(LeaseId),
    /// An answer that took too long to arrive.
    #[error("answer {0} does not arrive")]
    Late(LeaseId),
    /// An answer to a batch that was never submitted.
    #[error("answer {0} is to a batch that was never submitted")]
    UnknownBatch(LeaseId),
    /// An answer to a task that its batch does not have.
    #[error("answer {lease} is to a task that its batch lacks: there are {n_tasks}")]
    UnknownTask { lease: LeaseId, n_tasks: usize },
    /// An answer whose decoding panicked.
    #[error(transparent)]
    Panic(#[from] tokio::task::JoinError),
}

impl Breach {
    /// Whether it is a wrong answer, which arrived as it was sent: the worker is expelled. Other breaches may be those of a network, and end
    /// the connection alone.
    pub fn is_wrong_answer(&self) -> bool {
        matches!(self, Breach::Answer(..) | Breach::Panic(_))
    }
}
