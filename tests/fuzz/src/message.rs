//! Messages and payloads of every kind: an accepted value is unchanged after a round trip, and a blob is accepted only under its
//! own hash.

use grammaton::grammar::Grammar;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::models::decode::Decode;
use grammaton::work::lease::LeaseId;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Fit, Named, Sample, ShardState, ShardWeights, Work};
use prost::Message;
use prost::bytes::Bytes;
use proto::convert::blob::{self, Blob};
use proto::convert::{Wire, lease};
use proto::v1::{self, FromCoordinator, FromWorker, from_coordinator, from_worker};

/// Input: the first byte is the kind.
pub fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    let bytes = Bytes::copy_from_slice(rest);
    match kind {
        0 => envelope::<FromWorker>(bytes),
        1 => envelope::<FromCoordinator>(bytes),
        2 => names(bytes),
        3 => payload::<Grammar>(bytes, |grammar| Some(Blob::Grammar(Named::new(grammar)))),
        4 => payload::<Lexicon>(bytes, |lexicon| Some(Blob::Lexicon(Named::new(lexicon)))),
        5 => payload::<Shard>(bytes, |shard| Some(Blob::Shard(Named::new(shard)))),
        6 => payload::<Decode>(bytes, |decode| Some(Blob::Decode(Named::new(decode)))),
        7 => payload::<ShardWeights>(bytes, |_| None),
        8 => payload::<Answer>(bytes, |_| None),
        9 => payload::<Sample>(bytes, |_| None),
        10 => payload::<ShardState>(bytes, |shard_state| Some(Blob::ShardState(Named::new(shard_state)))),
        11 => payload::<Fit>(bytes, |fit| Some(Blob::Fit(Named::new(fit)))),
        _ => {}
    }
}

fn envelope<M: Message + Default + PartialEq>(bytes: Bytes) {
    let Ok(message) = M::decode(bytes) else { return };
    let written = message.encode_to_vec();
    // Bytes are compared instead of messages, since NaN does not equal itself.
    assert_eq!(M::decode(&written[..]).expect("what was written is read").encode_to_vec(), written);
}

/// Ids in messages: leases, hashes, sessions.
fn names(bytes: Bytes) {
    if let Ok(FromWorker { message: Some(from_worker::Message::Answer(head)) }) =
        FromWorker::decode(bytes.clone())
        && let Ok(id) = blob::lease_id_from_wire(head.id)
    {
        assert_eq!(blob::lease_id_from_wire(Some(blob::lease_id_to_wire(id))), Ok::<LeaseId, _>(id));
    }
    let Ok(FromCoordinator { message: Some(message) }) = FromCoordinator::decode(bytes) else { return };
    match message {
        from_coordinator::Message::Welcome(welcome) => {
            drop(blob::session_from_wire("welcome.session", &welcome.session))
        }
        from_coordinator::Message::Withdraw(withdraw) => drop(blob::lease_ids_from_wire(withdraw.leases)),
        from_coordinator::Message::Blob(head) => drop(blob::hash_from_wire("blob.hash", &head.hash)),
        from_coordinator::Message::Lease(head) => {
            let _ = blob::lease_id_from_wire(head.id);
            let _ = blob::hash_from_wire("lease.shard", &head.shard);
        }
        _ => {}
    }
}

fn payload<T: Wire>(bytes: Bytes, blob: impl Fn(T) -> Option<Blob>) {
    let Ok(value) = T::from_bytes(bytes) else { return };
    let written = value.to_bytes();
    let again = T::from_bytes(written.clone()).unwrap_or_else(|error| panic!("{}: {error}", T::NAME));
    assert_eq!(again.to_bytes(), written, "{}", T::NAME);
    if let Some(blob) = blob(value) {
        let kind = blob.kind() as i32;
        let named = Blob::from_bytes(kind, blob.hash(), written.clone()).expect("it has this hash");
        assert_eq!(named.hash(), blob.hash());
        let mut other = blob.hash();
        other.0[0] ^= 1;
        assert!(Blob::from_bytes(kind, other, written).is_err());
    }
}

/// Values of each kind, and their messages.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let mut seed = |kind: u8, bytes: &[u8]| seeds.push([&[kind], bytes].concat());
    for example in crate::task::examples() {
        let (task, answer) = (&example.task, &example.answer);
        for blob in Blob::of_task(task) {
            let kind = match blob {
                Blob::Grammar(_) => 3,
                Blob::Lexicon(_) => 4,
                Blob::Shard(_) => 5,
                Blob::Decode(_) => 6,
                Blob::ShardState(_) => 10,
                Blob::Fit(_) => 11,
            };
            seed(kind, &blob.to_bytes());
        }
        let id = LeaseId {
            batch: grammaton::work::lease::BatchId(1),
            task: grammaton::work::lease::TaskIndex(2),
            attempt: grammaton::work::lease::Attempt(3),
        };
        let (head, payload) = lease::to_wire(id, task);
        let assigned =
            FromCoordinator { message: Some(from_coordinator::Message::Lease(head)) }.encode_to_vec();
        seed(1, &assigned);
        seed(2, &assigned);
        match task.work {
            Work::Expect { .. } => seed(7, &payload),
            Work::Sample(_) => seed(9, &payload),
            _ => {}
        }
        seed(8, &answer.to_bytes());
        let (id, extent) = (Some(blob::lease_id_to_wire(id)), Some(proto::payload::extent(&payload)));
        let head = v1::AnswerHead { id, busy_micros: 7, extent, kept: None };
        let answered = FromWorker { message: Some(from_worker::Message::Answer(head)) }.encode_to_vec();
        seed(0, &answered);
        seed(2, &answered);
    }
    let leases = || vec![v1::LeaseId { batch: 1, task: 2, attempt: 3 }; 2];
    let hello = v1::Hello {
        version: proto::VERSION,
        name: "w".into(),
        slots: 2,
        cache_bytes: 9,
        session: Bytes::from_static(&[7; 16]),
        running: leases(),
        ..v1::Hello::default()
    };
    seed(0, &FromWorker { message: Some(from_worker::Message::Hello(hello)) }.encode_to_vec());
    let withdrawn = from_worker::Message::Withdrawn(v1::Withdrawn { leases: leases() });
    seed(0, &FromWorker { message: Some(withdrawn) }.encode_to_vec());
    let withdraw = from_coordinator::Message::Withdraw(v1::Withdraw { leases: leases() });
    seed(2, &FromCoordinator { message: Some(withdraw) }.encode_to_vec());
    seeds
}
