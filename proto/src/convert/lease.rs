//! Leases: the head names the kind of work and the blobs that it needs; the payload holds the rest of the request.

use grammaton::work::lease::LeaseId;
use grammaton::work::task::{Language, Named, Sample, ShardState, ShardWeights, Task, Work};
use prost::Message;
use prost::bytes::Bytes;

use super::blob::{Blob, hash_to_wire, language, lease_id_to_wire, shard_state};
use super::kinds::{annotate, candidates, collapse, sweep};
use super::{Wire, WireError, decoded};
use crate::v1::lease_head::{self as head, Work as Asked};
use crate::{payload, v1};

/// Head and payload of a lease of `task`.
pub fn to_wire(id: LeaseId, task: &Task) -> (v1::LeaseHead, Bytes) {
    let shard_state =
        shard_state(&task.work).map(|shard_state| hash_to_wire(shard_state.hash)).unwrap_or_default();
    let (work, payload) = match &task.work {
        Work::Candidates(lengths) => (Asked::Candidates(candidates::request_to_wire(lengths)), Bytes::new()),
        Work::Cover => (Asked::Cover(head::Cover {}), Bytes::new()),
        Work::Index => (Asked::Index(head::Index {}), Bytes::new()),
        Work::Expect { weights, losses } => {
            (Asked::Expect(head::Expect { losses: *losses }), weights.to_bytes())
        }
        Work::Sample(sample) => (Asked::Sample(head::Sample {}), sample.to_bytes()),
        Work::Collapse(collapse) => {
            let payload = collapse::request_to_wire(collapse).encode_to_vec().into();
            (Asked::Collapse(head::Collapse { shard_state }), payload)
        }
        Work::Sweep(sweeps) => {
            let payload = sweep::request_to_wire(sweeps).encode_to_vec().into();
            (Asked::Sweep(head::Sweep { shard_state }), payload)
        }
        Work::Decode(decode) => {
            (Asked::Decode(head::Decode { decode: hash_to_wire(decode.hash) }), Bytes::new())
        }
        Work::Annotate(annotate) => {
            let payload = annotate::request_to_wire(annotate).encode_to_vec().into();
            (Asked::Annotate(head::Annotate { shard_state }), payload)
        }
        Work::Fit(fit) => (Asked::Fit(head::Fit { fit: hash_to_wire(fit.hash) }), Bytes::new()),
    };
    let Language { grammar, lexicon } = language(task);
    let head = v1::LeaseHead {
        id: Some(lease_id_to_wire(id)),
        grammar: hash_to_wire(grammar.hash),
        lexicon: hash_to_wire(lexicon.hash),
        shard: hash_to_wire(task.shard.hash),
        work: Some(work),
        extent: Some(payload::extent(&payload)),
    };
    (head, payload)
}

/// Returns the work that a head asks for; an error if the field is missing.
pub fn asked(head: &v1::LeaseHead) -> Result<&Asked, WireError> {
    head.work.as_ref().ok_or(WireError::Missing { field: "lease.work" })
}

/// The grammar and the lexicon that the work of a lease is computed with, if it is with any; `find` looks up the blob that the head
/// names in a field.
pub fn language_from_wire<'b>(
    head: &v1::LeaseHead,
    find: impl Fn(&'static str, &[u8]) -> Result<&'b Blob, WireError>,
) -> Result<Option<Language>, WireError> {
    if matches!(asked(head)?, Asked::Annotate(_)) {
        return Ok(None);
    }
    let grammar = match find("lease.grammar", &head.grammar)? {
        Blob::Grammar(grammar) => grammar.clone(),
        _ => return Err(WireError::Missing { field: "lease.grammar" }),
    };
    let lexicon = match find("lease.lexicon", &head.lexicon)? {
        Blob::Lexicon(lexicon) => lexicon.clone(),
        _ => return Err(WireError::Missing { field: "lease.lexicon" }),
    };
    Ok(Some(Language { grammar, lexicon }))
}

/// Decodes the task of a lease; `find` looks up a blob by field name and hash.
pub fn task_from_wire<'b>(
    head: &v1::LeaseHead,
    payload: Bytes,
    find: impl Fn(&'static str, &[u8]) -> Result<&'b Blob, WireError>,
) -> Result<Task, WireError> {
    let language = language_from_wire(head, &find)?;
    let shard = match find("lease.shard", &head.shard)? {
        Blob::Shard(shard) => shard.clone(),
        _ => return Err(WireError::Missing { field: "lease.shard" }),
    };
    let work = work_from_wire(head, payload, |field, hash| find(field, hash).cloned())?;
    Ok(Task { language, shard, work })
}

/// Decodes the work that a lease asks for; `find` looks up a blob by field name and hash.
pub fn work_from_wire(
    head: &v1::LeaseHead,
    payload: Bytes,
    find: impl FnOnce(&'static str, &[u8]) -> Result<Blob, WireError>,
) -> Result<Work, WireError> {
    Ok(match asked(head)? {
        Asked::Candidates(message) => Work::Candidates(candidates::request_from_wire(message)),
        Asked::Cover(head::Cover {}) => Work::Cover,
        Asked::Index(head::Index {}) => Work::Index,
        Asked::Expect(head::Expect { losses }) => {
            Work::Expect { weights: ShardWeights::from_bytes(payload)?, losses: *losses }
        }
        Asked::Sample(head::Sample {}) => Work::Sample(Sample::from_bytes(payload)?),
        Asked::Collapse(head::Collapse { shard_state }) => {
            let message = decoded("collapse", payload)?;
            Work::Collapse(collapse::request_from_wire(message, || find_carried(shard_state, find))?)
        }
        Asked::Sweep(head::Sweep { shard_state }) => {
            let message = decoded("sweeps", payload)?;
            Work::Sweep(sweep::request_from_wire(message, || find_carried(shard_state, find))?)
        }
        Asked::Decode(head::Decode { decode }) => match find("lease.decode", decode)? {
            Blob::Decode(decode) => Work::Decode(decode),
            _ => return Err(WireError::Missing { field: "lease.decode" }),
        },
        Asked::Annotate(head::Annotate { shard_state }) => {
            let message = decoded("annotate", payload)?;
            Work::Annotate(annotate::request_from_wire(message, || find_carried(shard_state, find))?)
        }
        Asked::Fit(head::Fit { fit }) => match find("lease.fit", fit)? {
            Blob::Fit(fit) => Work::Fit(fit),
            _ => return Err(WireError::Missing { field: "lease.fit" }),
        },
    })
}

fn find_carried(
    hash: &[u8],
    find: impl FnOnce(&'static str, &[u8]) -> Result<Blob, WireError>,
) -> Result<Named<ShardState>, WireError> {
    match find("lease.shard_state", hash)? {
        Blob::ShardState(shard_state) => Ok(shard_state),
        _ => Err(WireError::Missing { field: "lease.shard_state" }),
    }
}
