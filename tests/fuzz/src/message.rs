//! Messages and payloads of every kind: an accepted value is unchanged after a round trip, and a blob has the hash of its bytes.

use grammaton::encoding::{decode, encode};
use grammaton::work::lease::LeaseId;
use grammaton::work::task::{Answer, ContentHash, Request};
use prost::Message;
use prost::bytes::Bytes;
use proto::blob::{self, Blob};
use proto::lease;
use proto::v1::{self, FromCoordinator, FromWorker, from_coordinator, from_worker};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// First bytes of blobs are these and the numbers of their kinds.
const BLOBS: u8 = 10;

/// Input: the first byte is the kind.
pub fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    let bytes = Bytes::copy_from_slice(rest);
    match kind {
        0 => envelope::<FromWorker>(bytes),
        1 => envelope::<FromCoordinator>(bytes),
        2 => names(bytes),
        3 => payload::<Request>(&bytes),
        4 => payload::<Answer>(&bytes),
        _ => blob(i32::from(kind.saturating_sub(BLOBS)), &bytes),
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
        from_coordinator::Message::Lease(head) => {
            let _ = blob::lease_id_from_wire(head.id);
            let _ = blob::hash_from_wire("lease.shard", &head.shard);
        }
        _ => {}
    }
}

fn payload<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    let Ok(value) = decode::<T>(bytes) else { return };
    let written = encode(&value);
    assert_eq!(encode(&decode::<T>(&written).expect("what was written is read")), written);
}

fn blob(kind: i32, bytes: &[u8]) {
    let Ok(blob) = Blob::from_bytes(kind, bytes) else { return };
    assert_eq!((blob.kind() as i32, blob.hash()), (kind, ContentHash::of(bytes)));
    let written = blob.to_bytes();
    let again = Blob::from_bytes(kind, &written).expect("what was written is read");
    assert_eq!((again.to_bytes(), again.hash()), (written.clone(), ContentHash::of(&written)));
}

/// Values of each kind, and their messages.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let mut seed = |kind: u8, bytes: &[u8]| seeds.push([&[kind], bytes].concat());
    for example in crate::task::examples() {
        let (task, answer) = (&example.task, &example.answer);
        for blob in Blob::of_task(task) {
            seed(BLOBS + blob.kind() as u8, &blob.to_bytes());
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
        seed(3, &payload);
        seed(4, &encode(answer));
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
