//! Blobs: the large values of tasks, which are sent once and then referred to by hash.

use std::sync::LazyLock;

use grammaton::grammar::Grammar;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::models::decode::Decode;
use grammaton::models::latent;
use grammaton::work::lease::{Attempt, BatchId, LeaseId, SessionId, TaskIndex};
use grammaton::work::shard::Shard;
use grammaton::work::task::{
    Annotate, Annotated, Answer, ChainFrom, Chained, Collapse, Collapsed, ContentHash, Fit, Language, Named,
    Pass, ShardState, Sweeps, Task, Work,
};
use prost::bytes::Bytes;

use super::{Wire, WireError};
use crate::v1;

/// A value that is sent once and cached by its hash.
#[derive(Clone, Debug)]
pub enum Blob {
    /// A grammar.
    Grammar(Named<Grammar>),
    /// The strings of all sticks.
    Lexicon(Named<Lexicon>),
    /// The items of a shard.
    Shard(Named<Shard>),
    /// Weights and options for decoding.
    Decode(Named<Decode>),
    /// The state of a shard between rounds.
    ShardState(Named<ShardState>),
    /// The priors that sentences are fitted to.
    Fit(Named<Fit>),
}

impl Blob {
    /// The blobs that `task` refers to.
    pub fn of_task(task: &Task) -> Vec<Blob> {
        let Language { grammar, lexicon } = language(task).clone();
        let mut blobs = vec![Blob::Grammar(grammar), Blob::Lexicon(lexicon), Blob::Shard(task.shard.clone())];
        match &task.work {
            Work::Decode(decode) => blobs.push(Blob::Decode(decode.clone())),
            Work::Fit(fit) => blobs.push(Blob::Fit(fit.clone())),
            _ => {}
        }
        blobs.extend(shard_state(&task.work).cloned().map(Blob::ShardState));
        blobs
    }

    /// Hash of the content.
    pub fn hash(&self) -> ContentHash {
        match self {
            Blob::Grammar(named) => named.hash,
            Blob::Lexicon(named) => named.hash,
            Blob::Shard(named) => named.hash,
            Blob::Decode(named) => named.hash,
            Blob::ShardState(named) => named.hash,
            Blob::Fit(named) => named.hash,
        }
    }

    /// Kind of the blob, for the head of its payload.
    pub fn kind(&self) -> v1::blob_head::Kind {
        match self {
            Blob::Grammar(_) => v1::blob_head::Kind::Grammar,
            Blob::Lexicon(_) => v1::blob_head::Kind::Lexicon,
            Blob::Shard(_) => v1::blob_head::Kind::Shard,
            Blob::Decode(_) => v1::blob_head::Kind::Decode,
            Blob::ShardState(_) => v1::blob_head::Kind::ShardState,
            Blob::Fit(_) => v1::blob_head::Kind::Fit,
        }
    }

    /// Encodes the payload.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Blob::Grammar(named) => named.value.to_bytes(),
            Blob::Lexicon(named) => named.value.to_bytes(),
            Blob::Shard(named) => named.value.to_bytes(),
            Blob::Decode(named) => named.value.to_bytes(),
            Blob::ShardState(named) => named.value.to_bytes(),
            Blob::Fit(named) => named.value.to_bytes(),
        }
    }

    /// Decodes a blob of the head's kind, and checks that its content has the head's hash.
    pub fn from_bytes(kind: i32, hash: ContentHash, payload: Bytes) -> Result<Blob, WireError> {
        let blob = match v1::blob_head::Kind::try_from(kind) {
            Ok(v1::blob_head::Kind::Grammar) => Blob::Grammar(Named::new(Grammar::from_bytes(payload)?)),
            Ok(v1::blob_head::Kind::Lexicon) => Blob::Lexicon(Named::new(Lexicon::from_bytes(payload)?)),
            Ok(v1::blob_head::Kind::Shard) => Blob::Shard(Named::new(Shard::from_bytes(payload)?)),
            Ok(v1::blob_head::Kind::Decode) => Blob::Decode(Named::new(Decode::from_bytes(payload)?)),
            Ok(v1::blob_head::Kind::ShardState) => {
                Blob::ShardState(Named::new(ShardState::from_bytes(payload)?))
            }
            Ok(v1::blob_head::Kind::Fit) => Blob::Fit(Named::new(Fit::from_bytes(payload)?)),
            Ok(v1::blob_head::Kind::Unspecified) | Err(_) => {
                let found = i64::from(kind);
                return Err(WireError::Range { field: "blob.kind", at: 0, found, start: 1, end: 7 });
            }
        };
        if blob.hash() != hash {
            return Err(WireError::Hash { field: "blob.hash" });
        }
        Ok(blob)
    }
}

/// The grammar and the lexicon that the lease of `task` names: every lease of this version of the protocol names some, also that of
/// trees, which are computed without.
pub fn language(task: &Task) -> &Language {
    static UNREAD: LazyLock<Language> = LazyLock::new(|| Language {
        grammar: Named::new(latent::grammar_in_formats()),
        lexicon: Named::new(Lexicon::default()),
    });
    task.language.as_ref().unwrap_or(&UNREAD)
}

/// The new state of the shard in an answer, if the answer has one.
pub fn kept_state(answer: Answer) -> Option<ShardState> {
    match answer {
        Answer::Collapsed(Collapsed { shard_state, .. }) | Answer::Chained(Chained { shard_state, .. }) => {
            Some(shard_state)
        }
        Answer::Annotated(Annotated { shard_state, .. }) => shard_state,
        _ => None,
    }
}

/// The state of the shard that this work starts from, if it needs one.
pub fn shard_state(work: &Work) -> Option<&Named<ShardState>> {
    match work {
        Work::Collapse(Collapse::Others { shard_state, .. })
        | Work::Sweep(Sweeps { from: ChainFrom::ShardState(shard_state), .. })
        | Work::Annotate(Annotate { pass: Pass::Others { shard_state, .. }, .. }) => Some(shard_state),
        _ => None,
    }
}

/// Converts the id of a lease to a message.
pub fn lease_id_to_wire(id: LeaseId) -> v1::LeaseId {
    v1::LeaseId { batch: id.batch.0, task: id.task.0, attempt: id.attempt.0 }
}

/// Converts a message to the id of a lease. The receiver checks whether the lease exists.
pub fn lease_id_from_wire(id: Option<v1::LeaseId>) -> Result<LeaseId, WireError> {
    let v1::LeaseId { batch, task, attempt } = id.ok_or(WireError::Missing { field: "lease.id" })?;
    Ok(LeaseId { batch: BatchId(batch), task: TaskIndex(task), attempt: Attempt(attempt) })
}

/// Converts ids of leases to messages.
pub fn lease_ids_to_wire(ids: impl IntoIterator<Item = LeaseId>) -> Vec<v1::LeaseId> {
    ids.into_iter().map(lease_id_to_wire).collect()
}

/// Converts messages to ids of leases.
pub fn lease_ids_from_wire(ids: Vec<v1::LeaseId>) -> Result<Vec<LeaseId>, WireError> {
    ids.into_iter().map(|id| lease_id_from_wire(Some(id))).collect()
}

/// Converts a content hash to bytes.
pub fn hash_to_wire(hash: ContentHash) -> Bytes {
    Bytes::copy_from_slice(&hash.0)
}

/// Converts bytes to a content hash; errors name `field`.
pub fn hash_from_wire(field: &'static str, bytes: &[u8]) -> Result<ContentHash, WireError> {
    let expected = size_of::<ContentHash>() as u64;
    let length = |_| WireError::Length { field, found: bytes.len() as u64, expected };
    Ok(ContentHash(bytes.try_into().map_err(length)?))
}

/// Converts bytes to the id of a session; errors name `field`.
pub fn session_from_wire(field: &'static str, bytes: &[u8]) -> Result<SessionId, WireError> {
    let expected = size_of::<SessionId>() as u64;
    let length = |_| WireError::Length { field, found: bytes.len() as u64, expected };
    Ok(SessionId(bytes.try_into().map_err(length)?))
}
