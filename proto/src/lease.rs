//! Leases: the head names the blobs that a task needs; the payload is its work.

use grammaton::encoding::encode;
use grammaton::work::lease::LeaseId;
use grammaton::work::task::{ContentHash, Language, Request, Task};
use prost::bytes::Bytes;

use crate::blob::{Blob, hash_from_wire, hash_to_wire, lease_id_to_wire};
use crate::check::{Invalid, decoded};
use crate::{payload, v1};

/// Head and payload of a lease of `task`.
pub fn to_wire(id: LeaseId, task: &Task) -> (v1::LeaseHead, Bytes) {
    let payload = Bytes::from(encode(&task.work));
    let hash = |hash: fn(&Language) -> ContentHash| task.language.as_ref().map(hash).map(hash_to_wire);
    let head = v1::LeaseHead {
        id: Some(lease_id_to_wire(id)),
        grammar: hash(|language| language.grammar.hash).unwrap_or_default(),
        lexicon: hash(|language| language.lexicon.hash).unwrap_or_default(),
        shard: hash_to_wire(task.shard.hash),
        extent: Some(payload::extent(&payload)),
        further: task.further.iter().map(|shard| hash_to_wire(shard.hash)).collect(),
    };
    (head, payload)
}

/// Decodes the task of a lease; `find` looks up a blob by its hash.
pub fn task_from_wire<'b>(
    head: &v1::LeaseHead,
    payload: &[u8],
    find: impl Fn(ContentHash) -> Option<&'b Blob>,
) -> Result<Task, Invalid> {
    /// The blob of a hash, if it is of the kind that the field is to name.
    macro_rules! named {
        ($kind:ident, $field:expr, $hash:expr) => {
            match find($hash) {
                Some(Blob::$kind(named)) => Ok(named.clone()),
                _ => Err(Invalid::Missing { field: $field }),
            }
        };
    }
    let hash = |field, bytes: &[u8]| hash_from_wire(field, bytes);
    let language = if head.grammar.is_empty() && head.lexicon.is_empty() {
        None // of trees, which are computed without
    } else {
        let grammar = named!(Grammar, "lease.grammar", hash("lease.grammar", &head.grammar)?)?;
        let lexicon = named!(Lexicon, "lease.lexicon", hash("lease.lexicon", &head.lexicon)?)?;
        Some(Language { grammar, lexicon })
    };
    let shard = named!(Shard, "lease.shard", hash("lease.shard", &head.shard)?)?;
    let further =
        head.further.iter().map(|bytes| named!(Shard, "lease.further", hash("lease.further", bytes)?));
    let further = further.collect::<Result<_, Invalid>>()?;
    let work = decoded::<Request>("work", payload)?.resolve(
        |hash| named!(ShardState, "work.shard_state", hash),
        |hash| named!(Decode, "work.decode", hash),
        |hash| named!(Fit, "work.fit", hash),
        |hash| named!(Weights, "work.weights", hash),
    )?;
    Ok(Task { language, shard, further, work })
}
