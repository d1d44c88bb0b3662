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
//! takes its place once it was checked. With an object store ([`Remote`]) the folder is a cache: what is not in it is brought when it is needed.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};
use blake3::Hash;
use tempfile::{NamedTempFile, TempDir};

use super::lock;
use super::record::{Input, JobId, Record};
use super::remote::{Remote, file_name};
use super::tenure::{Patience, Tenure, taken};
use crate::access;
use crate::store::Store;

/// The folder of a service.
pub struct Depot {
    folder: PathBuf,
    records: Store,
    remote: Option<(Remote, Mutex<Tenure>)>,
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

/// A file that has been brought, and is what was announced.
pub struct Arrived {
    file: NamedTempFile,
    hash: Hash,
    size: u64,
}

impl Depot {
    /// Takes the folder, which is made if it is not there, and the object store at `url`, if there is to be one; not to be called within a
    /// runtime. Blocks while it is not known whether another service works there.
    pub fn open(folder: &Path, url: Option<&str>) -> Result<Depot> {
        let refused = || {
            let option = if url.is_some() { "--cache" } else { "--store" };
            format!("{}: cannot keep jobs there; choose another folder with {option}", folder.display())
        };
        for part in ["files", "work"] {
            fs::create_dir_all(folder.join(part)).with_context(refused)?;
        }
        let lock = File::create(folder.join("lock")).with_context(refused)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "{}: another service works there; wait for its end, or choose another folder",
                folder.display()
            ),
            Err(TryLockError::Error(error)) => return Err(error).with_context(refused),
        }
        let folder = folder.canonicalize().with_context(refused)?;
        for part in ["files", "work"] {
            sweep(&folder.join(part)).with_context(refused)?;
        }
        let records = match url {
            Some(url) => format!("{}/jobs", url.trim_end_matches('/')),
            None => folder.join("jobs").display().to_string(),
        };
        let records = Store::open(&records)?;
        let remote = match url {
            Some(url) => {
                let name = name_of(&folder).with_context(refused)?;
                let store = Store::open(url)?;
                let tenure = Tenure::take(&store, &name, Patience::default())?;
                if tenure.is_successor {
                    let work = folder.join("work");
                    fs::remove_dir_all(&work).and_then(|()| fs::create_dir(work)).with_context(refused)?;
                }
                Some((Remote::open(store)?, Mutex::new(tenure)))
            }
            None => None,
        };
        Ok(Depot { folder, records, remote, _lock: lock })
    }

    /// Whether there is an object store, of which [`Depot::keep_up`] has to be called.
    pub fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    fn remote(&self) -> Option<&Remote> {
        self.remote.as_ref().map(|(remote, _)| remote)
    }

    /// Puts into the object store what has been told since the last time, in the audit and in the logs of the jobs in `work`. Gives what
    /// there is to say if this service is the keeper no more: another has taken its jobs over.
    pub fn keep_up(&self, work: &[JobId]) -> Result<Option<String>> {
        let Some((remote, tenure)) = &self.remote else { return Ok(None) };
        if !lock(tenure).renew(remote.store())? {
            return Ok(Some(taken(remote.store())));
        }
        remote.follow(&format!("audit/{}.jsonl", name_of(&self.folder)?), &self.audit())?;
        work.iter().try_for_each(|&id| remote.follow(&object(id, LOG), &self.log(id))).map(|()| None)
    }

    /// Lets another service take over at once.
    pub fn leave(&self) -> Result<()> {
        self.remote.as_ref().map_or(Ok(()), |(remote, tenure)| lock(tenure).leave(remote.store()))
    }

    /// The records of all jobs.
    pub fn records(&self) -> Result<Vec<Record>> {
        let read = |name: &String| {
            let bytes = self.records.get(name)?;
            let place = self.records.describe(name);
            serde_json::from_slice(&bytes)
                .with_context(|| format!("{place}: not the record of a job; restore it, or move it away"))
        };
        // Of an object store, waiting is most of it.
        let names = self.records.list()?;
        let parts = names.chunks(names.len().div_ceil(READERS).max(1));
        std::thread::scope(|scope| {
            let read = |names: &[String]| names.iter().map(read).collect::<Result<Vec<Record>>>();
            let readers: Vec<_> = parts.map(|names| scope.spawn(move || read(names))).collect();
            let parts = readers.into_iter().map(|reader| reader.join().expect("reading does not panic"));
            Ok(parts.collect::<Result<Vec<_>>>()?.concat())
        })
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
        self.job(id).join(RESULTS)
    }

    /// The file in which it is told what happened to it.
    pub fn log(&self, id: JobId) -> PathBuf {
        log_in(&self.job(id))
    }

    /// The file in which it is told what there was to see of it.
    pub fn scene(&self, id: JobId) -> PathBuf {
        self.job(id).join(SCENE)
    }

    /// Where its checkpoints are kept; empty: among its results.
    pub fn checkpoints(&self, id: JobId) -> String {
        self.remote().map_or(String::new(), |remote| remote.store().describe(&object(id, "checkpoints")))
    }

    /// The file in which it is told who did what.
    pub fn audit(&self) -> PathBuf {
        self.folder.join("audit.jsonl")
    }

    fn file(&self, hash: Hash) -> PathBuf {
        self.folder.join(file_name(hash))
    }

    fn has_here(&self, hash: Hash) -> bool {
        self.file(hash).is_file()
    }

    /// Whether a file is there.
    pub fn has(&self, hash: Hash) -> bool {
        self.has_here(hash) || self.remote().is_some_and(|remote| remote.has(hash))
    }

    /// Brings a file from the object store if it is not in the folder.
    fn bring(&self, hash: Hash) -> Result<()> {
        let Some(remote) = self.remote().filter(|_| !self.has_here(hash)) else { return Ok(()) };
        let file = self.file_aside()?;
        remote.bring(&file_name(hash), file.path())?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(file.path())?)?;
        let place = || remote.store().describe(&file_name(hash));
        ensure!(hasher.finalize() == hash, "{}: its bytes are not those that were put there", place());
        self.put_down(file, hash)
    }

    /// A file that is about to be brought.
    pub fn receive(&self, hash: Hash, size: u64) -> Result<Incoming> {
        let file = self.file_aside()?;
        Ok(Incoming { file, hasher: blake3::Hasher::new(), hash, size, got: 0 })
    }

    /// Keeps a file that has been brought.
    pub fn keep(&self, arrived: Arrived) -> Result<()> {
        if let Some(remote) = self.remote() {
            remote.keep(arrived.hash, arrived.file.path())?;
        }
        self.put_down(arrived.file, arrived.hash)
    }

    fn file_aside(&self) -> Result<NamedTempFile> {
        let file = tempfile::Builder::new().prefix(ASIDE).tempfile_in(self.folder.join("files"));
        file.context(CANNOT_WRITE)
    }

    fn put_down(&self, file: NamedTempFile, hash: Hash) -> Result<()> {
        let put_down = || -> io::Result<()> {
            file.as_file().sync_all()?;
            file.persist(self.file(hash)).map_err(|error| error.error)?;
            File::open(self.folder.join("files"))?.sync_all()
        };
        put_down().context(CANNOT_WRITE)
    }

    /// A folder that is that of no job yet, with the job file and its inputs.
    pub fn lay_out(&self, job: &str, inputs: &[Input]) -> Result<TempDir> {
        let aside = self.aside()?;
        fs::write(aside.path().join(JOB), job).context(CANNOT_WRITE)?;
        self.lay_inputs(aside.path(), inputs)?;
        Ok(aside)
    }

    fn aside(&self) -> Result<TempDir> {
        let aside = tempfile::Builder::new().prefix(ASIDE).tempdir_in(self.folder.join("work"));
        aside.context(CANNOT_WRITE)
    }

    fn lay_inputs(&self, folder: &Path, inputs: &[Input]) -> Result<()> {
        for Input { path, hash } in inputs {
            self.bring(*hash)?;
            let place = inputs_in(folder).join(path);
            let lay = || -> io::Result<()> {
                place.parent().map_or(Ok(()), fs::create_dir_all)?;
                // Not every file system has links.
                fs::hard_link(self.file(*hash), &place)
                    .or_else(|_| fs::copy(self.file(*hash), &place).map(drop))
            };
            lay().context(CANNOT_WRITE)?;
        }
        Ok(())
    }

    /// Makes such a folder that of a job.
    pub fn settle(&self, aside: TempDir, id: JobId) -> Result<()> {
        if let Some(remote) = self.remote() {
            for name in [JOB, LOG] {
                remote.store().put_file(&object(id, name), &aside.path().join(name))?;
            }
        }
        self.take_place(aside, &self.job(id))
    }

    fn take_place(&self, aside: TempDir, place: &Path) -> Result<()> {
        let moved = || -> io::Result<()> {
            fs::rename(aside.path(), place)?;
            place.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
        };
        moved().context(CANNOT_WRITE)?;
        let _moved = aside.keep();
        Ok(())
    }

    /// Brings the folder of a job from the object store if it is not there: what is told of it, without inputs and results.
    pub fn recall(&self, id: JobId) -> Result<()> {
        let Some(remote) = self.remote().filter(|_| !self.job(id).exists()) else { return Ok(()) };
        let aside = self.aside()?;
        for name in [JOB, LOG, SCENE] {
            if let Some(bytes) = remote.store().find(&object(id, name))? {
                fs::write(aside.path().join(name), bytes).context(CANNOT_WRITE)?;
            }
        }
        self.take_place_once(aside, &self.job(id))
    }

    /// Takes a place that another may take at the same moment, with the same things.
    fn take_place_once(&self, aside: TempDir, place: &Path) -> Result<()> {
        self.take_place(aside, place).or_else(|error| if place.exists() { Ok(()) } else { Err(error) })
    }

    /// Brings what a job needs to begin, or to go on, from the object store if it is not there.
    pub fn restore(&self, id: JobId, inputs: &[Input]) -> Result<()> {
        self.recall(id)?;
        let place = inputs_in(&self.job(id));
        if inputs.is_empty() || place.exists() {
            return Ok(());
        }
        let aside = self.aside()?;
        self.lay_inputs(aside.path(), inputs)?;
        fs::rename(inputs_in(aside.path()), place).context(CANNOT_WRITE)
    }

    /// Puts the results of a job into the object store.
    pub fn publish(&self, id: JobId) -> Result<()> {
        let Some(remote) = self.remote() else { return Ok(()) };
        self.list(id)?.into_iter().try_for_each(|(path, _)| {
            remote.store().put_file(&object(id, &format!("{RESULTS}/{path}")), &self.results(id).join(path))
        })
    }

    /// Puts what is told of a job that is over into the object store.
    pub fn tell(&self, id: JobId) -> Result<()> {
        let Some(remote) = self.remote() else { return Ok(()) };
        let told = [(LOG, self.log(id)), (SCENE, self.scene(id))].into_iter();
        told.filter(|(_, file)| file.exists())
            .try_for_each(|(name, file)| remote.store().put_file(&object(id, name), &file))
    }

    /// Removes files that no job reads, which were brought for one that never came.
    pub fn forget_others<'a>(&self, records: impl Iterator<Item = &'a Record>) -> Result<()> {
        let wanted = records.flat_map(|record| &record.inputs).map(|input| file_name(input.hash));
        let wanted: BTreeSet<String> = wanted.collect();
        for entry in fs::read_dir(self.folder.join("files"))? {
            let entry = entry?;
            if !wanted.contains(&format!("files/{}", entry.file_name().to_string_lossy())) {
                fs::remove_file(entry.path())?;
            }
        }
        self.remote().map_or(Ok(()), |remote| remote.forget_others(&wanted))
    }

    /// The files of a job's results: paths below their folder, sorted, and sizes; without those that are of no use elsewhere.
    pub fn list(&self, id: JobId) -> Result<Vec<(String, u64)>> {
        self.recall_results(id)?;
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

    fn recall_results(&self, id: JobId) -> Result<()> {
        let Some(remote) = self.remote().filter(|_| !self.results(id).exists()) else { return Ok(()) };
        self.recall(id)?;
        let (aside, place) = (self.aside()?, object(id, RESULTS));
        for path in remote.store().list_below(&place)?.into_iter().filter(|path| is_safe(path)) {
            remote.bring(&format!("{place}/{path}"), &aside.path().join(path))?;
        }
        self.take_place_once(aside, &self.results(id))
    }
}

/// The name of a file of a job in the object store.
fn object(id: JobId, name: &str) -> String {
    format!("work/{id}/{name}")
}

/// What a folder is called in an object store: the same as long as it is there.
fn name_of(folder: &Path) -> io::Result<String> {
    let file = folder.join("name");
    match fs::read_to_string(&file) {
        Ok(name) if !name.is_empty() => Ok(name),
        _ => {
            let name = access::secret()?;
            fs::write(file, &name).map(|()| name)
        }
    }
}

impl std::fmt::Display for Arrived {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} bytes, {}", self.size, self.hash.to_hex())
    }
}

impl Incoming {
    /// All of it has come; an error if it is not what was announced.
    pub fn finish(self) -> Result<Arrived> {
        let Incoming { file, hasher, hash, size, got } = self;
        ensure!(got == size, "{got} of {size} bytes came; try again");
        ensure!(
            hasher.finalize() == hash,
            "the bytes are not those that were announced; the file may have changed meanwhile: try again"
        );
        Ok(Arrived { file, hash, size })
    }

    /// The next bytes of it.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.got += bytes.len() as u64;
        ensure!(self.got <= self.size, "more bytes than the {} that were announced", self.size);
        self.hasher.update(bytes);
        self.file.write_all(bytes).context(CANNOT_WRITE)
    }
}

/// The file in which it is told what happens to a job, in the folder of the job.
pub fn log_in(folder: &Path) -> PathBuf {
    folder.join(LOG)
}

/// The folder of a job's files, in that of the job.
pub fn inputs_in(folder: &Path) -> PathBuf {
    folder.join("inputs")
}

const JOB: &str = "job.toml";
const LOG: &str = "log.jsonl";
const SCENE: &str = "scene.json";
const RESULTS: &str = "out";
const CANNOT_WRITE: &str = "the service cannot write; its folder is full, or not its own";
/// Records that are read at a time.
const READERS: usize = 16;

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
        depot.keep(incoming.finish().unwrap()).unwrap();
        blake3::hash(bytes)
    }

    #[test]
    fn what_was_kept_is_there_for_the_next_process_and_for_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let depot = Depot::open(dir.path(), None).unwrap();
        let text = bring(&depot, b"some sentences\n");
        let records: Vec<Record> = [1, 2, 10].map(|id| record(id, Vec::new())).into();
        records.iter().for_each(|record| depot.save(record).unwrap());
        let error = Depot::open(dir.path(), None).err().unwrap().to_string();
        assert!(error.contains("another service works there"), "{error}");
        drop(depot);
        std::fs::write(dir.path().join("files/.new-1"), "half").unwrap();
        let depot = Depot::open(dir.path(), None).unwrap();
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
        let depot = Depot::open(dir.path(), None).unwrap();
        let (bytes, other) = (&b"12345"[..], blake3::hash(b"54321"));
        let mut more = depot.receive(blake3::hash(bytes), 4).unwrap();
        assert!(more.push(bytes).unwrap_err().to_string().contains("more bytes than the 4"));
        let mut fewer = depot.receive(blake3::hash(bytes), 6).unwrap();
        fewer.push(bytes).unwrap();
        assert!(fewer.finish().err().unwrap().to_string().contains("5 of 6 bytes"));
        let mut others = depot.receive(other, 5).unwrap();
        others.push(bytes).unwrap();
        assert!(others.finish().err().unwrap().to_string().contains("not those that were announced"));
        drop(more);
        assert!(!depot.has(other) && !depot.has(blake3::hash(bytes)));
        assert_eq!(fs::read_dir(dir.path().join("files")).unwrap().count(), 0);
    }

    #[test]
    fn a_job_has_its_files_under_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let depot = Depot::open(dir.path(), None).unwrap();
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
