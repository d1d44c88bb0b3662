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
    11,
    &[
        "7d4d8ded", "54184401", "81e48f74", "65633bcd", "d188816b", "996f6598", "57f3b06c", "67653c5e",
        "0cae2e31", "fb2ca9be", "05c3db66", "548f0667", "996f291b", "045e7d8e", "b4a11792", "30e16e7e",
        "22770aeb", "dad7f261", "ee20fe28",
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
