//! The bytes of messages change only together with the version of the protocol.

use grammaton::encoding::encode;
use grammaton::work::lease::{Attempt, BatchId, LeaseId, TaskIndex, max_leases};
use grammaton::work::task::{Answer, Task};
use prost::Message;
use proto::blob::Blob;
use proto::{lease, v1};

/// The version of the protocol, and the hashes of the messages of every example. When the bytes of a message change, raise
/// the version, unless only computed values in it changed, such as the draws of a sampler.
const GOLDEN: (u32, &[&str]) = (
    13,
    &[
        "deda9f84", "e22ce1ec", "b0b30570", "7896af6d", "bbf028d4", "3ff8da3b", "6ffd2ecd", "e997ff37",
        "0cae2e31", "4acb4e95", "69f969f7", "11def2b8", "1c4abf14", "f362b98b", "d5049bc8", "f889fee8",
        "22770aeb", "dad7f261", "ee20fe28", "61eb7ff1", "b8df6345",
    ],
);

/// Hash of all messages of a task: the head of its lease, its payload, its blobs, and the answer.
fn hash((task, answer): &(Task, Answer)) -> String {
    let id = LeaseId { batch: BatchId(1), task: TaskIndex(2), attempt: Attempt(3) };
    let (head, payload) = lease::to_wire(id, task);
    let mut hasher = blake3::Hasher::new();
    for part in [head.encode_to_vec(), payload.to_vec(), encode(answer)] {
        hasher.update(&part);
    }
    for blob in Blob::of_task(task) {
        hasher.update(&blob.to_bytes());
    }
    hasher.finalize().to_hex()[..8].to_owned()
}

#[test]
fn the_bytes_of_messages_are_those_of_the_version() {
    let hashes: Vec<String> = super::messages::every_kind().iter().map(hash).collect();
    let found = (proto::VERSION, hashes.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(found, (GOLDEN.0, GOLDEN.1.to_vec()));
}

#[test]
fn the_largest_hello_fits_a_message() {
    let lease = v1::LeaseId { batch: u64::MAX, task: u32::MAX, attempt: u32::MAX };
    let held = v1::Held { hash: vec![0; 32].into(), size: u64::MAX };
    let hello = v1::Hello {
        version: u32::MAX,
        name: "n".repeat(proto::MAX_NAME),
        slots: u32::MAX,
        cache_bytes: u64::MAX,
        held: vec![held; proto::MAX_HELD],
        instance: vec![0; 16].into(),
        session: vec![0; 16].into(),
        running: vec![lease; max_leases(proto::MAX_SLOTS)],
    };
    assert!(hello.encoded_len() < proto::MAX_MESSAGE, "{}", hello.encoded_len());
}
