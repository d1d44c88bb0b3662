//! Blobs and leases: how a task travels, its large values by name and only once.

use prost::Message;
use prost::bytes::Bytes;
use shared::grammar::Grammar;
use shared::grammar::lexicon::Lexicon;
use shared::models::decode::Decode;
use shared::num::Wide;
use shared::work::shard::Shard;
use shared::work::task::{
    Annotate, Annotated, Answer, ChainFrom, Chained, Collapse, Collapsed, ContentHash, Fit, Named, Pass,
    Sample, ShardState, Sweeps, Task, Work,
};

use super::{
    NON_NEGATIVE, POSITIVE, Wire, WireError, chain, decoded, latent, non_negative, numbers, positive,
};
use crate::{payload, v1};
use shared::work::lease::{Attempt, BatchId, LeaseId, SessionId, TaskIndex};

/// A value that is sent once and cached by its hash.
#[derive(Clone, Debug)]
pub enum Blob {
    /// A grammar.
    Grammar(Named<Grammar>),
    /// Stick strings.
    Lexicon(Named<Lexicon>),
    /// Items.
    Shard(Named<Shard>),
    /// What to decode with.
    Decode(Named<Decode>),
    /// What a shard carries.
    ShardState(Named<ShardState>),
    /// What to fit sentences to.
    Fit(Named<Fit>),
}

impl Blob {
    /// The blobs that `task` refers to.
    pub fn of_task(task: &Task) -> Vec<Blob> {
        let mut blobs = vec![
            Blob::Grammar(task.grammar.clone()),
            Blob::Lexicon(task.lexicon.clone()),
            Blob::Shard(task.shard.clone()),
        ];
        match &task.work {
            Work::Decode(decode) => blobs.push(Blob::Decode(decode.clone())),
            Work::Fit(fit) => blobs.push(Blob::Fit(fit.clone())),
            _ => {}
        }
        blobs.extend(carried(&task.work).cloned().map(Blob::ShardState));
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

    /// Kind, for the head.
    pub fn kind(&self) -> v1::blob_head::Kind {
        match self {
            Blob::Grammar(_) => v1::blob_head::Kind::Grammar,
            Blob::Lexicon(_) => v1::blob_head::Kind::Lexicon,
            Blob::Shard(_) => v1::blob_head::Kind::Shard,
            Blob::Decode(_) => v1::blob_head::Kind::Decode,
            Blob::ShardState(_) => v1::blob_head::Kind::Carried,
            Blob::Fit(_) => v1::blob_head::Kind::Fit,
        }
    }

    /// The payload.
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

    /// From kind and hash of the head, and the payload; checked to have the hash.
    pub fn from_bytes(kind: i32, hash: ContentHash, payload: Bytes) -> Result<Blob, WireError> {
        let blob = match v1::blob_head::Kind::try_from(kind) {
            Ok(v1::blob_head::Kind::Grammar) => Blob::Grammar(Named::new(Grammar::from_bytes(payload)?)),
            Ok(v1::blob_head::Kind::Lexicon) => Blob::Lexicon(Named::new(Lexicon::from_bytes(payload)?)),
            Ok(v1::blob_head::Kind::Shard) => Blob::Shard(Named::new(Shard::from_bytes(payload)?)),
            Ok(v1::blob_head::Kind::Decode) => Blob::Decode(Named::new(Decode::from_bytes(payload)?)),
            Ok(v1::blob_head::Kind::Carried) => {
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

/// What the shard carries on from an answer, if it does.
pub fn carried_on(answer: Answer) -> Option<ShardState> {
    match answer {
        Answer::Collapsed(Collapsed { carried, .. }) | Answer::Chained(Chained { carried, .. }) => {
            Some(carried)
        }
        Answer::Annotated(Annotated { carried, .. }) => carried,
        _ => None,
    }
}

/// What the shard of this work carries, if it is to be told.
pub fn carried(work: &Work) -> Option<&Named<ShardState>> {
    match work {
        Work::Collapse(Collapse::Others { carried, .. })
        | Work::Sweep(Sweeps { from: ChainFrom::ShardState(carried), .. })
        | Work::Annotate(Annotate { pass: Pass::Others { carried, .. }, .. }) => Some(carried),
        _ => None,
    }
}

/// Head of the lease of `task`, and its payload.
pub fn lease_to_wire(id: LeaseId, task: &Task) -> (v1::LeaseHead, Bytes) {
    let mut payload = Bytes::new();
    let mut head = v1::LeaseHead {
        id: Some(lease_id_to_wire(id)),
        grammar: hash_to_wire(task.grammar.hash),
        lexicon: hash_to_wire(task.lexicon.hash),
        shard: hash_to_wire(task.shard.hash),
        ..v1::LeaseHead::default()
    };
    head.work = match &task.work {
        Work::Candidates { max_length } => {
            head.max_length = *max_length;
            v1::lease_head::Work::Candidates
        }
        Work::Cover => v1::lease_head::Work::Cover,
        Work::Index => v1::lease_head::Work::Index,
        Work::Expect { weights, losses } => {
            payload = weights.to_bytes();
            head.losses = *losses;
            v1::lease_head::Work::Expect
        }
        Work::Decode(decode) => {
            head.decode = hash_to_wire(decode.hash);
            v1::lease_head::Work::Decode
        }
        Work::Sample(sample) => {
            payload = sample.to_bytes();
            v1::lease_head::Work::Sample
        }
        Work::Collapse(collapse) => {
            payload = collapse_to_wire(collapse).encode_to_vec().into();
            v1::lease_head::Work::Collapse
        }
        Work::Sweep(sweeps) => {
            payload = chain::sweeps_to_wire(sweeps).encode_to_vec().into();
            v1::lease_head::Work::Sweep
        }
        Work::Annotate(annotate) => {
            payload = latent::annotate_to_wire(annotate).encode_to_vec().into();
            v1::lease_head::Work::Annotate
        }
        Work::Fit(fit) => {
            head.fit = hash_to_wire(fit.hash);
            v1::lease_head::Work::Fit
        }
    } as i32;
    head.carried = carried(&task.work).map(|carried| hash_to_wire(carried.hash)).unwrap_or_default();
    head.extent = Some(payload::extent(&payload));
    (head, payload)
}

/// The work that a lease asks for; `find` looks up a blob that the head names in a field.
pub fn work_from_wire(
    head: &v1::LeaseHead,
    payload: Bytes,
    find: impl FnOnce(&'static str, &[u8]) -> Result<Blob, WireError>,
) -> Result<Work, WireError> {
    match v1::lease_head::Work::try_from(head.work) {
        Ok(v1::lease_head::Work::Candidates) => Ok(Work::Candidates { max_length: head.max_length }),
        Ok(v1::lease_head::Work::Cover) => Ok(Work::Cover),
        Ok(v1::lease_head::Work::Index) => Ok(Work::Index),
        Ok(v1::lease_head::Work::Expect) => {
            Ok(Work::Expect { weights: Vec::from_bytes(payload)?, losses: head.losses })
        }
        Ok(v1::lease_head::Work::Decode) => match find("lease.decode", &head.decode)? {
            Blob::Decode(decode) => Ok(Work::Decode(decode)),
            _ => Err(WireError::Missing { field: "lease.decode" }),
        },
        Ok(v1::lease_head::Work::Sample) => Ok(Work::Sample(Sample::from_bytes(payload)?)),
        Ok(v1::lease_head::Work::Collapse) => {
            Ok(Work::Collapse(collapse_from_wire(decoded("collapse", payload)?, || {
                find_carried(head, find)
            })?))
        }
        Ok(v1::lease_head::Work::Sweep) => {
            Ok(Work::Sweep(chain::sweeps_from_wire(decoded("sweeps", payload)?, || {
                find_carried(head, find)
            })?))
        }
        Ok(v1::lease_head::Work::Annotate) => {
            Ok(Work::Annotate(latent::annotate_from_wire(decoded("annotate", payload)?, || {
                find_carried(head, find)
            })?))
        }
        Ok(v1::lease_head::Work::Fit) => match find("lease.fit", &head.fit)? {
            Blob::Fit(fit) => Ok(Work::Fit(fit)),
            _ => Err(WireError::Missing { field: "lease.fit" }),
        },
        Ok(v1::lease_head::Work::Unspecified) | Err(_) => {
            let found = i64::from(head.work);
            Err(WireError::Range { field: "lease.work", at: 0, found, start: 1, end: 11 })
        }
    }
}

fn find_carried(
    head: &v1::LeaseHead,
    find: impl FnOnce(&'static str, &[u8]) -> Result<Blob, WireError>,
) -> Result<Named<ShardState>, WireError> {
    match find("lease.carried", &head.carried)? {
        Blob::ShardState(carried) => Ok(carried),
        _ => Err(WireError::Missing { field: "lease.carried" }),
    }
}

fn collapse_to_wire(collapse: &Collapse) -> v1::Collapse {
    let pass = match collapse {
        Collapse::Start { weights } => v1::collapse::Pass::Start(weights.to_wire()),
        Collapse::Others { pseudo, sums, temperature, carried: _ } => {
            let (pseudo, sums) = (pseudo.clone(), sums.clone());
            v1::collapse::Pass::Others(v1::Others { pseudo, sums, temperature: *temperature })
        }
    };
    v1::Collapse { pass: Some(pass) }
}

fn collapse_from_wire(
    message: v1::Collapse,
    carried: impl FnOnce() -> Result<Named<ShardState>, WireError>,
) -> Result<Collapse, WireError> {
    match message.pass.ok_or(WireError::Missing { field: "collapse.pass" })? {
        v1::collapse::Pass::Start(weights) => {
            Ok(Collapse::Start { weights: Vec::<Wide>::from_wire(weights)? })
        }
        v1::collapse::Pass::Others(v1::Others { pseudo, sums, temperature }) => {
            numbers("collapse.pseudo", &pseudo, NON_NEGATIVE, non_negative)?;
            numbers("collapse.sums", &sums, NON_NEGATIVE, non_negative)?;
            numbers("collapse.temperature", &[temperature], POSITIVE, positive)?;
            Ok(Collapse::Others { pseudo, sums, temperature, carried: carried()? })
        }
    }
}

/// A lease's name to the wire.
pub fn lease_id_to_wire(id: LeaseId) -> v1::LeaseId {
    v1::LeaseId { batch: id.batch.0, task: id.task.0, attempt: id.attempt.0 }
}

/// A lease's name from the wire; whether there is such a lease is for the receiver to say.
pub fn lease_id_from_wire(id: Option<v1::LeaseId>) -> Result<LeaseId, WireError> {
    let v1::LeaseId { batch, task, attempt } = id.ok_or(WireError::Missing { field: "lease.id" })?;
    Ok(LeaseId { batch: BatchId(batch), task: TaskIndex(task), attempt: Attempt(attempt) })
}

/// A content hash to the wire.
pub fn hash_to_wire(hash: ContentHash) -> Bytes {
    Bytes::copy_from_slice(&hash.0)
}

/// A content hash from the wire.
pub fn hash_from_wire(field: &'static str, bytes: &[u8]) -> Result<ContentHash, WireError> {
    let expected = size_of::<ContentHash>() as u64;
    let length = |_| WireError::Length { field, found: bytes.len() as u64, expected };
    Ok(ContentHash(bytes.try_into().map_err(length)?))
}

/// A session's name from the wire.
pub fn session_from_wire(bytes: &[u8]) -> Result<SessionId, WireError> {
    let expected = size_of::<SessionId>() as u64;
    let length = |_| WireError::Length { field: "welcome.session", found: bytes.len() as u64, expected };
    Ok(SessionId(bytes.try_into().map_err(length)?))
}
