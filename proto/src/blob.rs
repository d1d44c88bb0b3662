//! Blobs: the large values of tasks, which are sent once and then referred to by hash.

use std::sync::Arc;

use grammaton::encoding::encode;
use grammaton::grammar::Grammar;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::models::decode::Decode;
use grammaton::work::lease::{Attempt, BatchId, LeaseId, SessionId, TaskIndex};
use grammaton::work::shard::Shard;
use grammaton::work::task::{
    ContentHash, Fit, Language, Named, ShardState, Task, TaskWeights, WeightsInUse, Work,
};
use prost::bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::check::{Invalid, decoded};
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
    /// The weights of all parameters.
    Weights(Named<WeightsInUse>),
}

impl Blob {
    /// The blobs that `task` refers to.
    pub fn of_task(task: &Task) -> Vec<Blob> {
        let mut blobs = Vec::new();
        if let Some(Language { grammar, lexicon }) = task.language.clone() {
            blobs.extend([Blob::Grammar(grammar), Blob::Lexicon(lexicon)]);
        }
        blobs.extend(task.shards().cloned().map(Blob::Shard));
        match &task.work {
            Work::Decode(decode) => blobs.push(Blob::Decode(decode.clone())),
            Work::Fit(fit) => blobs.push(Blob::Fit(fit.clone())),
            Work::Expect { weights: TaskWeights::Shared { all, .. }, .. } => {
                blobs.push(Blob::Weights(all.clone()));
            }
            _ => {}
        }
        blobs.extend(task.work.shard_state().cloned().map(Blob::ShardState));
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
            Blob::Weights(named) => named.hash,
        }
    }

    /// Whether it is what a batch is computed with, of no use to later ones.
    pub fn is_of_batch(&self) -> bool {
        matches!(self, Blob::Decode(_) | Blob::Fit(_) | Blob::Weights(_))
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
            Blob::Weights(_) => v1::blob_head::Kind::Weights,
        }
    }

    /// Encodes the payload, whose hash is the blob's.
    pub fn to_bytes(&self) -> Bytes {
        let bytes = match self {
            Blob::Grammar(named) => encode(&*named.value),
            Blob::Lexicon(named) => encode(&*named.value),
            Blob::Shard(named) => encode(&*named.value),
            Blob::Decode(named) => encode(&*named.value),
            Blob::ShardState(named) => encode(&*named.value),
            Blob::Fit(named) => encode(&*named.value),
            Blob::Weights(named) => encode(&*named.value),
        };
        bytes.into()
    }

    /// Decodes a blob of the head's kind, which has the hash of these bytes.
    pub fn from_bytes(kind: i32, payload: &[u8]) -> Result<Blob, Invalid> {
        fn named<T: DeserializeOwned>(what: &'static str, payload: &[u8]) -> Result<Named<T>, Invalid> {
            Ok(Named { hash: ContentHash::of(payload), value: Arc::new(decoded(what, payload)?) })
        }
        Ok(match v1::blob_head::Kind::try_from(kind) {
            Ok(v1::blob_head::Kind::Grammar) => Blob::Grammar(named("grammar", payload)?),
            Ok(v1::blob_head::Kind::Lexicon) => Blob::Lexicon(named("lexicon", payload)?),
            Ok(v1::blob_head::Kind::Shard) => Blob::Shard(named("shard", payload)?),
            Ok(v1::blob_head::Kind::Decode) => Blob::Decode(named("decode", payload)?),
            Ok(v1::blob_head::Kind::ShardState) => Blob::ShardState(named("shard_state", payload)?),
            Ok(v1::blob_head::Kind::Fit) => Blob::Fit(named("fit", payload)?),
            Ok(v1::blob_head::Kind::Weights) => Blob::Weights(named("weights", payload)?),
            Ok(v1::blob_head::Kind::Unspecified) | Err(_) => {
                let found = i64::from(kind);
                return Err(Invalid::Range { field: "blob.kind", at: 0, found, start: 1, end: 8 });
            }
        })
    }
}

/// Converts the id of a lease to a message.
pub fn lease_id_to_wire(id: LeaseId) -> v1::LeaseId {
    v1::LeaseId { batch: id.batch.0, task: id.task.0, attempt: id.attempt.0 }
}

/// Converts a message to the id of a lease. The receiver checks whether the lease exists.
pub fn lease_id_from_wire(id: Option<v1::LeaseId>) -> Result<LeaseId, Invalid> {
    let v1::LeaseId { batch, task, attempt } = id.ok_or(Invalid::Missing { field: "lease.id" })?;
    Ok(LeaseId { batch: BatchId(batch), task: TaskIndex(task), attempt: Attempt(attempt) })
}

/// Converts ids of leases to messages.
pub fn lease_ids_to_wire(ids: impl IntoIterator<Item = LeaseId>) -> Vec<v1::LeaseId> {
    ids.into_iter().map(lease_id_to_wire).collect()
}

/// Converts messages to ids of leases.
pub fn lease_ids_from_wire(ids: Vec<v1::LeaseId>) -> Result<Vec<LeaseId>, Invalid> {
    ids.into_iter().map(|id| lease_id_from_wire(Some(id))).collect()
}

/// Converts a content hash to bytes.
pub fn hash_to_wire(hash: ContentHash) -> Bytes {
    Bytes::copy_from_slice(&hash.0)
}

/// Converts bytes to a content hash; errors name `field`.
pub fn hash_from_wire(field: &'static str, bytes: &[u8]) -> Result<ContentHash, Invalid> {
    let expected = size_of::<ContentHash>() as u64;
    let length = |_| Invalid::Length { field, found: bytes.len() as u64, expected };
    Ok(ContentHash(bytes.try_into().map_err(length)?))
}

/// Converts bytes to the id of a session; errors name `field`.
pub fn session_from_wire(field: &'static str, bytes: &[u8]) -> Result<SessionId, Invalid> {
    let expected = size_of::<SessionId>() as u64;
    let length = |_| Invalid::Length { field, found: bytes.len() as u64, expected };
    Ok(SessionId(bytes.try_into().map_err(length)?))
}
