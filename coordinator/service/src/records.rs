//! The records of jobs: one object for each, replaced as a whole.
//!
//! In an object store a record is replaced only if it has the version that this leader knows, and carries the epoch of the leader that wrote
//! it. A leader that takes over from another service writes its own epoch into every record before it confirms anything, so that the leader
//! before cannot write any more. Each record carries a checksum: a damaged one is set aside, and the other jobs go on.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use basics::clock;
use basics::store::{Store, Version};
use parking_lot::Mutex;
use serde_json::Value;

use super::leader_lease::{LeaderLease, Term};
use super::record::{JobId, Millis, Record};

/// Records that are read at a time: of an object store, waiting is most of it.
const READERS: usize = 16;
/// The key of the checksum in a stored record.
const CHECKSUM: &str = "blake3";
/// The key of the epoch of the leader that wrote it.
const EPOCH: &str = "epoch";
/// The key of a number that no other write has: one that arrives late must not pass for a later one of the same record.
const ATTEMPT: &str = "attempt";

/// Storage of records.
pub struct Records {
    store: Store,
    /// If that is an object store.
    leader: Option<Leader>,
}

/// The leader's knowledge of the records in an object store.
struct Leader {
    term: Term,
    /// Whether another service was the leader before.
    is_successor: bool,
    versions: Mutex<BTreeMap<JobId, Version>>,
}

/// The records that were found.
#[derive(Default)]
pub struct ReadRecords {
    /// Whole records.
    pub records: Vec<Record>,
    /// Damaged ones: the id, if the name has one, and what is wrong, with the way out.
    pub damaged: Vec<(Option<JobId>, String)>,
}

impl Records {
    /// Records in `store`, with the leader lease if that is an object store.
    pub fn new(store: Store, lease: Option<&LeaderLease>) -> Records {
        let leader = lease.map(|lease| Leader {
            term: lease.term(),
            is_successor: lease.is_successor,
            versions: Mutex::default(),
        });
        Records { store, leader }
    }

    /// Reads all records; to be called once, before anything is stored.
    pub fn read(&self) -> Result<ReadRecords> {
        let names = self.store.list()?;
        let parts = names.chunks(names.len().div_ceil(READERS).max(1));
        let found = std::thread::scope(|scope| {
            let read = |names: &[String]| {
                let mut found = ReadRecords::default();
                names.iter().try_for_each(|name| self.read_one(name, &mut found)).map(|()| found)
            };
            let readers: Vec<_> = parts.map(|names| scope.spawn(move || read(names))).collect();
            let parts = readers.into_iter().map(|reader| reader.join().expect("reading does not panic"));
            parts.collect::<Result<Vec<ReadRecords>>>()
        });
        let mut all = ReadRecords::default();
        for part in found? {
            all.records.extend(part.records);
            all.damaged.extend(part.damaged);
        }
        Ok(all)
    }

    fn read_one(&self, name: &str, found: &mut ReadRecords) -> Result<()> {
        let id = name.strip_suffix(".json").and_then(|id| id.parse().ok());
        let bytes = match &self.leader {
            None => self.store.find(name)?,
            Some(leader) => match self.read_version(leader, name)? {
                Some((bytes, version)) => {
                    id.map(|id| leader.versions.lock().insert(id, version));
                    Some(bytes)
                }
                None => None,
            },
        };
        let Some(bytes) = bytes else { return Ok(()) }; // removed meanwhile
        match parse(&bytes).and_then(|(record, _)| {
            ensure!(Some(record.id) == id, "the record of job {}", record.id);
            Ok(record)
        }) {
            Ok(record) => found.records.push(record),
            Err(error) => found.damaged.push((
                id,
                format!(
                    "{}: not a whole record: {error:#}; restore the file, or move it away together with work/{}",
                    self.store.describe(name),
                    name.trim_end_matches(".json")
                ),
            )),
        }
        Ok(())
    }

    /// Reads an object of an object store. A successor writes its epoch into the record, whatever is written there at the same time.
    fn read_version(&self, leader: &Leader, name: &str) -> Result<Option<(Vec<u8>, Version)>> {
        while let Some((bytes, version)) = self.store.find_version(name)? {
            let Some((record, _)) = parse(&bytes).ok().filter(|_| leader.is_successor) else {
                return Ok(Some((bytes, version)));
            };
            let bytes = json(&record, leader.term.epoch)?;
            if let Some(version) = self.store.replace(name, bytes.clone(), &version)? {
                return Ok(Some((bytes, version)));
            }
        }
        Ok(None)
    }

    /// Stores a record in the place of the one before, and refuses if this service is not the leader any more.
    pub fn save(&self, record: &Record) -> Result<()> {
        let name = name(record.id);
        let Some(Leader { term, versions, .. }) = &self.leader else {
            return self.store.put(&name, json(record, 0)?);
        };
        term.check()?;
        let json = json(record, term.epoch)?;
        let mut known = versions.lock().get(&record.id).cloned();
        loop {
            let written = match &known {
                None => self.store.create(&name, json.clone())?,
                Some(version) => self.store.replace(&name, json.clone(), version)?,
            };
            if let Some(version) = written {
                versions.lock().insert(record.id, version);
                // A later leader may have read the record before.
                return term.check();
            }
            let found = self.store.find_version(&name)?;
            let (Some(_), Some((bytes, version))) = (&known, found) else {
                bail!("{}: another service writes there", self.store.describe(&name));
            };
            let epoch = parse(&bytes).map_or(0, |(_, epoch)| epoch);
            ensure!(epoch <= term.epoch, "{}: a later leader writes there", self.store.describe(&name));
            known = Some(version);
        }
    }

    /// Makes sure that there is no job of this id, which was not accepted: in an object store a record of it may be under way, and must find
    /// another one when it arrives.
    pub fn void(&self, id: JobId, now: Millis) -> Result<()> {
        let Some(Leader { term, .. }) = &self.leader else { return self.remove(id) };
        let name = name(id);
        loop {
            term.check()?;
            let json = json(&Record::void(id, now), term.epoch)?;
            let written = match self.store.find_version(&name)? {
                None => self.store.create(&name, json)?,
                Some((bytes, version)) => {
                    let epoch = parse(&bytes).map_or(0, |(_, epoch)| epoch);
                    ensure!(
                        epoch <= term.epoch,
                        "{}: a later leader writes there",
                        self.store.describe(&name)
                    );
                    self.store.replace(&name, json, &version)?
                }
            };
            if written.is_some() {
                return Ok(());
            }
        }
    }

    /// Removes a record: without it there is no job.
    pub fn remove(&self, id: JobId) -> Result<()> {
        if let Some(leader) = &self.leader {
            leader.term.check()?;
        }
        self.store.remove(&name(id))
    }
}

/// The name of the record of a job.
fn name(id: JobId) -> String {
    format!("{id}.json")
}

fn json(record: &Record, epoch: u64) -> Result<Vec<u8>> {
    let mut value = serde_json::to_value(record).context("a record does not serialise")?;
    let checksum = checksum(&value)?;
    let object = value.as_object_mut().context("a record is no object")?;
    object.insert(CHECKSUM.to_owned(), checksum.into());
    object.insert(EPOCH.to_owned(), epoch.into());
    object.insert(ATTEMPT.to_owned(), clock::nanoseconds().into());
    serde_json::to_vec_pretty(&value).context("a record does not serialise")
}

/// The record and the epoch of the leader that wrote it. Records of earlier versions have no checksum.
fn parse(bytes: &[u8]) -> Result<(Record, u64)> {
    let mut value: Value = serde_json::from_slice(bytes)?;
    let object = value.as_object_mut().context("not an object")?;
    let stored = object.remove(CHECKSUM);
    object.remove(ATTEMPT);
    let epoch = object.remove(EPOCH).and_then(|epoch| epoch.as_u64()).unwrap_or(0);
    if let Some(stored) = stored {
        ensure!(stored.as_str() == Some(&checksum(&value)?), "the checksum is not that of the record");
    }
    Ok((serde_json::from_value(value)?, epoch))
}

/// BLAKE3 of the record as compact JSON with sorted keys.
fn checksum(value: &Value) -> Result<String> {
    Ok(blake3::hash(&serde_json::to_vec(value)?).to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leader_lease::{LeaderLease, Timeouts};
    use crate::record::State;
    use crate::record::tests::record;

    fn folder(dir: &tempfile::TempDir) -> Records {
        Records::new(Store::open(&dir.path().display().to_string()).unwrap(), None)
    }

    /// Whatever byte of a record changes: it is set aside with the way out, or means the same, and the others are there.
    #[test]
    fn a_damaged_record_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let records = folder(&dir);
        let kept = [record(1, State::Queued), record(2, State::Failed { error: "no".into() })];
        kept.iter().for_each(|record| records.save(record).unwrap());
        let (path, mut n_damaged) = (dir.path().join("2.json"), 0);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            let ReadRecords { records: found, damaged } = records.read().unwrap();
            assert!(found.contains(&kept[0]));
            match &damaged[..] {
                [] => assert!(found.contains(&kept[1]), "{at}"),
                [(Some(JobId(2)), text)] => {
                    assert!(text.contains("move it away together with work/2"), "{text}");
                    n_damaged += 1;
                }
                other => panic!("{at}: {other:?}"),
            }
        }
        assert!(n_damaged * 10 > whole.len() * 7, "{n_damaged} of {}", whole.len());
        // Records of earlier versions have no checksum.
        std::fs::write(&path, serde_json::to_vec(&kept[1]).unwrap()).unwrap();
        assert_eq!(records.read().unwrap().records.len(), 2);
    }

    /// A leader that comes back after another one has begun changes nothing.
    #[test]
    fn a_former_leader_overwrites_nothing() {
        let store = || Store::open("memory://former").unwrap();
        let jobs = || Store::open("memory://former/jobs").unwrap();
        let (look, term) = (std::time::Duration::from_millis(2), std::time::Duration::from_secs(3600));
        // A term without end: as if the leader had checked it just before it was cut off.
        let timeouts = Timeouts { look, unchanged_looks: 2, term };
        let before = LeaderLease::take(&store(), "before", timeouts).unwrap();
        let former = Records::new(jobs(), Some(&before));
        for id in [1, 2] {
            former.save(&record(id, State::Queued)).unwrap();
        }
        let now = LeaderLease::take(&store(), "now", timeouts).unwrap();
        let current = Records::new(jobs(), Some(&now));
        assert_eq!(current.read().unwrap().records.len(), 2);
        current.save(&record(1, State::Cancelled)).unwrap();
        current.save(&record(3, State::Queued)).unwrap();
        for id in [1, 2, 3] {
            let refused = former.save(&record(id, State::Running)).unwrap_err().to_string();
            assert!(refused.contains("writes there"), "{refused}");
        }
        let mut states: Vec<_> =
            current.read().unwrap().records.into_iter().map(|of| (of.id.0, of.state)).collect();
        states.sort_unstable_by_key(|of| of.0);
        assert_eq!(states, [(1, State::Cancelled), (2, State::Queued), (3, State::Queued)]);
    }
}
