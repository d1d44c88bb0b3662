//! Where a service keeps things: one folder, of one process at a time.
//!
//! ```text
//! jobs/17.json        the record of a job, replaced as a whole
//! files/3a7f…         what jobs read, by the BLAKE3 of its bytes, kept once
//! work/17/job.toml    the job, as it was submitted
//!         inputs/     its files, under the names they have in it
//!         log.jsonl   what happened to it
//!         scene.json  what there was to see of it when it ended
//!         out/        its output folder, as `train` makes it
//! audit.jsonl         who did what
//! ```
//!
//! What is half there was never there: records and files are written aside, synced and renamed, and a job's folder is made beside the others and
//! takes its place once it was checked.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use blake3::Hash;
use tempfile::{NamedTempFile, TempDir};

use super::record::{Input, JobId, Record};
use crate::store::Store;

/// The folder of a service.
pub struct Depot {
    folder: PathBuf,
    records: Store,
    /// Locked as long as this process works there.
    _lock: File,
}

/// A file that is being brought.
pub struct Incoming {
    file: NamedTempFile,
    hasher: blake3::Hasher,
    hash: Hash,
    size: u64,
    got: u64,
}

impl Depot {
    /// Takes the folder, which is made if it is not there; not to be called within a runtime.
    pub fn open(folder: &Path) -> Result<Depot> {
        let refused =
            || format!("{}: cannot keep jobs there; choose another folder with --store", folder.display());
        for part in ["jobs", "files", "work"] {
            fs::create_dir_all(folder.join(part)).with_context(refused)?;
        }
        let lock = File::create(folder.join("lock")).with_context(refused)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "{}: another service works there; wait for its end, or choose another folder with --store",
                folder.display()
            ),
            Err(TryLockError::Error(error)) => return Err(error).with_context(refused),
        }
        let folder = folder.canonicalize().with_context(refused)?;
        for part in ["files", "work"] {
            sweep(&folder.join(part)).with_context(refused)?;
        }
        let records = Store::open(&folder.join("jobs").display().to_string())?;
        Ok(Depot { folder, records, _lock: lock })
    }

    /// The records of all jobs.
    pub fn records(&self) -> Result<Vec<Record>> {
        let read = |name: String| {
            let bytes = self.records.get(&name)?;
            let place = self.records.describe(&name);
            serde_json::from_slice(&bytes)
                .with_context(|| format!("{place}: not the record of a job; restore it, or move it away"))
        };
        self.records.list()?.into_iter().map(read).collect()
    }

    /// Writes a record down.
    pub fn save(&self, record: &Record) -> Result<()> {
        let json = serde_json::to_vec_pretty(record).context("a record does not serialise")?;
        self.records.put(&format!("{}.json", record.id), json)
    }

    /// The folder of a job.
    pub fn job(&self, id: JobId) -> PathBuf {
        self.folder.join("work").join(id.to_string())
    }

    /// The folder of its results.
    pub fn results(&self, id: JobId) -> PathBuf {
        self.job(id).join("out")
    }

    /// The file in which it is told what happened to it.
    pub fn log(&self, id: JobId) -> PathBuf {
        self.job(id).join("log.jsonl")
    }

    /// The file in which it is told who did what.
    pub fn audit(&self) -> PathBuf {
        self.folder.join("audit.jsonl")
    }

    fn file(&self, hash: Hash) -> PathBuf {
        self.folder.join("files").join(hash.to_hex().as_str())
    }

    /// Whether a file is there.
    pub fn has(&self, hash: Hash) -> bool {
        self.file(hash).is_file()
    }

    /// A file that is about to be brought.
    pub fn receive(&self, hash: Hash, size: u64) -> Result<Incoming> {
        let file = tempfile::Builder::new().prefix(ASIDE).tempfile_in(self.folder.join("files"));
        let file = file.context("the service cannot write; its folder is full, or not its own")?;
        Ok(Incoming { file, hasher: blake3::Hasher::new(), hash, size, got: 0 })
    }

    /// Keeps a file that has been brought, if it is what was announced.
    pub fn keep(&self, incoming: Incoming) -> Result<()> {
        let Incoming { file, hasher, hash, size, got } = incoming;
        ensure!(got == size, "{got} of {size} bytes came; try again");
        ensure!(
            hasher.finalize() == hash,
            "the bytes are not those that were announced; the file may have changed meanwhile: try again"
        );
        let kept = || -> io::Result<()> {
            file.as_file().sync_all()?;
            file.persist(self.file(hash)).map_err(|error| error.error)?;
            File::open(self.folder.join("files"))?.sync_all()
        };
        kept().context("the service cannot write; its folder is full, or not its own")
    }

    /// A folder that is that of no job yet, with the job file and its inputs.
    pub fn lay_out(&self, job: &str, inputs: &[Input]) -> Result<TempDir> {
        let aside = tempfile::Builder::new().prefix(ASIDE).tempdir_in(self.folder.join("work"));
        let aside = aside.context("the service cannot write; its folder is full, or not its own")?;
        let lay = || -> io::Result<()> {
            fs::write(aside.path().join("job.toml"), job)?;
            for input in inputs {
                let place = inputs_in(aside.path()).join(&input.path);
                fs::create_dir_all(place.parent().unwrap_or(aside.path()))?;
                let kept = self.file(input.hash);
                // Not every file system has links.
                fs::hard_link(&kept, &place).or_else(|_| fs::copy(&kept, &place).map(drop))?;
            }
            Ok(())
        };
        lay().context("the service cannot write; its folder is full, or not its own")?;
        Ok(aside)
    }

    /// Makes such a folder that of a job.
    pub fn settle(&self, aside: TempDir, id: JobId) -> Result<()> {
        let settle = || -> io::Result<()> {
            fs::rename(aside.path(), self.job(id))?;
            File::open(self.folder.join("work"))?.sync_all()
        };
        settle().context("the service cannot write; its folder is full, or not its own")?;
        let _moved = aside.keep();
        Ok(())
    }

    /// Removes files that no job reads, which were brought for one that never came.
    pub fn forget_others<'a>(&self, records: impl Iterator<Item = &'a Record>) -> io::Result<()> {
        let read = records.flat_map(|record| &record.inputs).map(|input| input.hash.to_hex().to_string());
        let read: std::collections::BTreeSet<String> = read.collect();
        for entry in fs::read_dir(self.folder.join("files"))? {
            let entry = entry?;
            if !read.contains(&*entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// The files of a job's results: paths below their folder, sorted, and sizes; without those that are of no use elsewhere.
    pub fn list(&self, id: JobId) -> Result<Vec<(String, u64)>> {
        let folder = self.results(id);
        let mut found = Vec::new();
        let mut folders = vec![folder.clone()];
        while let Some(here) = folders.pop() {
            for entry in fs::read_dir(&here).with_context(|| format!("{id}: no results"))? {
                let entry = entry?;
                let path = entry.path();
                let Some(name) = path.strip_prefix(&folder).ok().and_then(Path::to_str) else { continue };
                let kind = entry.file_type()?;
                if name == "checkpoints" || name.starts_with('.') {
                    continue;
                } else if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    found.push((name.to_owned(), entry.metadata()?.len()));
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

impl std::fmt::Display for Incoming {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} bytes, {}", self.size, self.hash.to_hex())
    }
}

impl Incoming {
    /// The next bytes of it.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.got += bytes.len() as u64;
        ensure!(self.got <= self.size, "more bytes than the {} that were announced", self.size);
        self.hasher.update(bytes);
        self.file.write_all(bytes).context("the service cannot write; its folder is full, or not its own")
    }
}

/// The folder of a job's files, in that of the job.
pub fn inputs_in(folder: &Path) -> PathBuf {
    folder.join("inputs")
}

/// What names begin with that are not in their place yet.
const ASIDE: &str = ".new-";

/// Removes what a process left that was killed while it wrote.
fn sweep(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(ASIDE) {
            let path = entry.path();
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
    }
    Ok(())
}

/// Whether `path` stays below the folder that it is put in, and can be told.
pub fn is_safe(path: &str) -> bool {
    let below = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let told = path.chars().all(|letter| !letter.is_control() && letter != '\\');
    !path.is_empty() && path.len() <= 512 && below && told && !path.ends_with('/') && !path.contains("//")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::record::{Millis, State};

    fn record(id: u64, inputs: Vec<Input>) -> Record {
        Record {
            id: JobId(id),
            name: "job".into(),
            owner: "ann".into(),
            priority: 10,
            max_workers: None,
            key: String::new(),
            inputs,
            state: State::Queued,
            submitted: Millis(1),
            begun: None,
            ended: None,
        }
    }

    fn bring(depot: &Depot, bytes: &[u8]) -> Hash {
        let mut incoming = depot.receive(blake3::hash(bytes), bytes.len() as u64).unwrap();
        bytes.chunks(3).for_each(|piece| incoming.push(piece).unwrap());
        depot.keep(incoming).unwrap();
        blake3::hash(bytes)
    }

    #[test]
    fn what_was_kept_is_there_for_the_next_process_and_for_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let depot = Depot::open(dir.path()).unwrap();
        let text = bring(&depot, b"some sentences\n");
        let records: Vec<Record> = [1, 2, 10].map(|id| record(id, Vec::new())).into();
        records.iter().for_each(|record| depot.save(record).unwrap());
        let error = Depot::open(dir.path()).err().unwrap().to_string();
        assert!(error.contains("another service works there"), "{error}");
        drop(depot);
        std::fs::write(dir.path().join("files/.new-1"), "half").unwrap();
        let depot = Depot::open(dir.path()).unwrap();
        let mut found = depot.records().unwrap();
        found.sort_unstable_by_key(|record| record.id);
        assert_eq!(found, records);
        assert!(depot.has(text) && !dir.path().join("files/.new-1").exists());
        depot.forget_others(records.iter()).unwrap();
        assert!(!depot.has(text));
    }

    #[test]
    fn only_what_was_announced_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let depot = Depot::open(dir.path()).unwrap();
        let (bytes, other) = (&b"12345"[..], blake3::hash(b"54321"));
        let mut more = depot.receive(blake3::hash(bytes), 4).unwrap();
        assert!(more.push(bytes).unwrap_err().to_string().contains("more bytes than the 4"));
        let mut fewer = depot.receive(blake3::hash(bytes), 6).unwrap();
        fewer.push(bytes).unwrap();
        assert!(depot.keep(fewer).unwrap_err().to_string().contains("5 of 6 bytes"));
        let mut others = depot.receive(other, 5).unwrap();
        others.push(bytes).unwrap();
        assert!(depot.keep(others).unwrap_err().to_string().contains("not those that were announced"));
        drop(more);
        assert!(!depot.has(other) && !depot.has(blake3::hash(bytes)));
        assert_eq!(fs::read_dir(dir.path().join("files")).unwrap().count(), 0);
    }

    #[test]
    fn a_job_has_its_files_under_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let depot = Depot::open(dir.path()).unwrap();
        let text = bring(&depot, b"text");
        let inputs = ["corpus.txt", "more/of it.txt"].map(|path| Input { path: path.into(), hash: text });
        let aside = depot.lay_out("[model]\n", &inputs).unwrap();
        depot.settle(aside, JobId(1)).unwrap();
        let inputs = inputs_in(&depot.job(JobId(1)));
        assert_eq!(fs::read(inputs.join("more/of it.txt")).unwrap(), b"text");
        let out = depot.results(JobId(1));
        fs::create_dir_all(out.join("checkpoints")).unwrap();
        fs::create_dir_all(out.join("model")).unwrap();
        for name in ["summary.json", "model/model.bin", "checkpoints/1.ckpt", ".shards-1"] {
            fs::write(out.join(name), name).unwrap();
        }
        assert_eq!(
            depot.list(JobId(1)).unwrap(),
            [("model/model.bin".into(), 15), ("summary.json".into(), 12)]
        );
        assert!(depot.list(JobId(2)).is_err());
    }

    #[test]
    fn paths_that_leave_their_folder_are_not_safe() {
        for path in ["a", "a/b.txt", "b&a <b>.txt", "a..b"] {
            assert!(is_safe(path), "{path}");
        }
        for path in ["", "/etc/passwd", "../a", "a/../../b", "./a", "a\nb", "a\\b", "a//b", "a/"] {
            assert!(!is_safe(path), "{path}");
        }
    }
}
