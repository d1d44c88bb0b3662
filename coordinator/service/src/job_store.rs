//! Where a service keeps things: one folder, of one process at a time.
//!
//! ```text
//! jobs/17.json        the record of a job (`records`)
//! files/3a7f…         what jobs read, by the BLAKE3 of its bytes, kept once
//! work/17/job.toml    the job, as it was submitted
//!         inputs/     its files, under the names they have in it
//!         log.jsonl   what happened to it
//!         scene.json  the view of the job when it ended
//!         out/        its output folder, as `train` makes it
//!         annotated.txt  annotations of its results
//! next-id             the id of the next job
//! expelled.jsonl      expelled workers (`expulsions`)
//! audit.jsonl         who did what
//! ```
//!
//! Nothing is incomplete: records and files are written under a temporary name, synced and renamed, and a job's folder is made beside the others and
//! takes its place once it was checked (`acceptance`). With an object store ([`Remote`]) the folder is a cache: missing files are downloaded when they are needed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use basics::paths::is_safe;
use basics::store::{Store, Version};
use basics::{atomic_write, faults};
use blake3::Hash;
use fleet::access;
use tempfile::{NamedTempFile, TempDir};

use super::leader_lease::{LeaderLease, Term, Timeouts};
use super::record::{Input, JobId, Millis, Record};
use super::records::Records;
use super::remote::{Remote, file_name};
use super::view::JobView;
use crate::job_process::folder::{JOB, RESULTS, inputs_in};

/// Files of a result, as in [`JobStore::list`], and their checksums by path.
pub type Published = (Vec<(String, u64)>, BTreeMap<String, String>);

/// The folder of a service.
pub struct JobStore {
    folder: PathBuf,
    records: Records,
    /// The folder, or the URL of the object store.
    place: String,
    remote: Option<Remote>,
    /// The leader lease of the object store, until it is taken.
    lease: Option<LeaderLease>,
    term: Option<Term>,
    /// Locked as long as this process works there.
    _locks: [File; 2],
}

/// An upload in progress.
pub struct Incoming {
    file: NamedTempFile,
    hasher: blake3::Hasher,
    hash: Hash,
    size: u64,
    got: u64,
}

/// A file of a job's results.
#[derive(Clone, PartialEq, Debug)]
pub struct ResultFile {
    /// Path below the folder of results.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// BLAKE3 of its bytes, unless the job was done by an earlier version.
    pub hash: Option<Hash>,
}

/// Downloads of a file whose bytes arrive damaged, at most.
const DOWNLOADS: usize = 3;

/// A complete upload with the announced size and hash.
pub struct Arrived {
    file: NamedTempFile,
    hash: Hash,
    size: u64,
}

impl JobStore {
    /// Takes the folder, which is made if it is not there, and the object store at a URL, if there is to be one, where it waits for others
    /// with such timeouts; not to be called within a runtime. Blocks while it is not known whether another service works there.
    pub fn open(folder: &Path, store: Option<(&str, Timeouts)>) -> Result<JobStore> {
        let refused = || {
            let option = if store.is_some() { "--cache" } else { "--store" };
            format!("{}: cannot keep jobs there; choose another folder with {option}", folder.display())
        };
        for part in ["files", "work"] {
            fs::create_dir_all(folder.join(part)).with_context(refused)?;
        }
        let locks = take_locks(folder)?;
        let folder = folder.canonicalize().with_context(refused)?;
        for part in ["files", "work"] {
            sweep(&folder.join(part)).with_context(refused)?;
        }
        let place =
            store.map_or(folder.display().to_string(), |(url, _)| url.trim_end_matches('/').to_owned());
        let (remote, lease) = match store {
            Some((_, timeouts)) => {
                let name = name_of(&folder).with_context(refused)?;
                let store = Store::open(&place)?;
                let leader_lease = LeaderLease::take(&store, &name, timeouts)?;
                if leader_lease.is_successor {
                    let work = folder.join("work");
                    fs::remove_dir_all(&work).and_then(|()| fs::create_dir(work)).with_context(refused)?;
                }
                (Some(Remote::open(store)?), Some(leader_lease))
            }
            None => (None, None),
        };
        let term = lease.as_ref().map(LeaderLease::term);
        let records = Records::new(Store::open(&format!("{place}/jobs"))?, lease.as_ref());
        Ok(JobStore { folder, records, place, remote, lease, term, _locks: locks })
    }

    /// The copy in an object store, if there is one.
    pub fn remote(&self) -> Option<&Remote> {
        self.remote.as_ref()
    }

    /// Takes the leader lease of the object store, for the thread that renews it.
    pub fn take_lease(&mut self) -> Option<LeaderLease> {
        self.lease.take()
    }

    /// Copies the new lines of the audit, and of the logs of `jobs`, to the object store.
    pub fn copy_logs(&self, jobs: &[JobId]) -> Result<()> {
        let Some(remote) = &self.remote else { return Ok(()) };
        remote.follow(&format!("audit/{}.jsonl", name_of(&self.folder)?), &self.audit())?;
        jobs.iter().try_for_each(|&id| remote.follow(&object(id, LOG), &self.log(id)))
    }

    /// The records of jobs.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// The leader's term in the object store, if there is one.
    pub fn term(&self) -> Option<Term> {
        self.term.clone()
    }

    /// The place of everything, opened anew.
    pub fn open_place(&self) -> Result<Store> {
        Store::open(&self.place)
    }

    /// Removes the folder of a job, here and in the object store.
    pub fn remove_work(&self, id: JobId) -> Result<()> {
        self.remote().map_or(Ok(()), |remote| remote.remove_work(id))?;
        on_disk(|| match fs::remove_dir_all(self.job(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
    }

    /// Removes the remaining files of a job whose record is marked as deleted, the record last.
    pub fn remove_deleted(&self, id: JobId) -> Result<()> {
        self.remove_work(id)?;
        self.records.remove(id)
    }

    /// Removes all of `deleted`, except void records; failures are left to the next service.
    pub fn remove_all_deleted(&self, deleted: &[Record], now: Millis) {
        for Record { id, .. } in deleted.iter().filter(|record| !record.is_void(now)) {
            if let Err(error) = self.remove_deleted(*id) {
                tracing::warn!("{id}: the job was deleted, but cannot be removed yet: {error:#}");
            }
        }
    }

    /// Removes the folders of jobs that were not accepted: those without a record. One with results stays, as its record was lost. Returns
    /// the highest id that a folder has.
    pub fn remove_unaccepted(&self, accepted: &BTreeSet<JobId>) -> Result<Option<JobId>> {
        let mut names: BTreeSet<String> = BTreeSet::new();
        for entry in fs::read_dir(self.folder.join("work"))? {
            names.insert(entry?.file_name().to_string_lossy().into_owned());
        }
        if let Some(remote) = self.remote() {
            names.extend(remote.store().folders("work")?);
        }
        let ids: BTreeSet<JobId> = names.iter().filter_map(|name| name.parse().ok()).collect();
        for &id in ids.difference(accepted) {
            let place = format!("{}/work/{id}", self.place);
            if self.has_begun(id)? {
                tracing::warn!(
                    "{place}: results of a job without a record; restore jobs/{id}.json, or move the folder away"
                );
            } else {
                self.remove_work(id)?;
                tracing::info!("{place}: removed, as the job was not accepted");
            }
        }
        Ok(ids.last().copied())
    }

    /// Whether there is anything in the folder of a job that was not there when it was accepted.
    fn has_begun(&self, id: JobId) -> Result<bool> {
        let here = [RESULTS, VIEW].iter().any(|name| self.job(id).join(name).exists());
        let there = |remote: &Remote| remote.store().list_below(&format!("work/{id}"));
        let there = self.remote().map(there).transpose()?.unwrap_or_default();
        Ok(here || there.iter().any(|name| ![JOB, LOG, ANNOTATIONS].contains(&&name[..])))
    }

    /// The folder of a job.
    pub fn job(&self, id: JobId) -> PathBuf {
        self.folder.join("work").join(id.to_string())
    }

    /// The folder of its results.
    pub fn results(&self, id: JobId) -> PathBuf {
        self.job(id).join(RESULTS)
    }

    /// Its event log.
    pub fn log(&self, id: JobId) -> PathBuf {
        log_in(&self.job(id))
    }

    /// The file of its rounds and snapshots.
    pub fn view(&self, id: JobId) -> PathBuf {
        self.job(id).join(VIEW)
    }

    /// Writes what there was to see of a job.
    pub fn save_view(&self, id: JobId, view: &JobView) -> Result<()> {
        Ok(fs::write(self.view(id), serde_json::to_vec(view)?)?)
    }

    /// Annotations of its results, none if there is no such file, and their version in the object store, which alone has them if there is one.
    pub fn annotations(&self, id: JobId) -> Result<(Vec<u8>, Option<Version>)> {
        if let Some(remote) = self.remote() {
            return Ok(remote
                .store()
                .find_version(&object(id, ANNOTATIONS))?
                .map_or_else(Default::default, |(bytes, version)| (bytes, Some(version))));
        }
        match fs::read(self.job(id).join(ANNOTATIONS)) {
            Ok(bytes) => Ok((bytes, None)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Default::default()),
            Err(error) => Err(anyhow!(error).context(format!("{id}: cannot read the annotations"))),
        }
    }

    /// Puts annotations in the place of the version that was read, in an object store; returns whether it was still the last one there.
    pub fn keep_annotations(&self, id: JobId, bytes: &[u8], over: Option<&Version>) -> Result<bool> {
        if let Some(remote) = self.remote() {
            let (store, object) = (remote.store(), object(id, ANNOTATIONS));
            let kept = match over {
                Some(version) => store.replace(&object, bytes.to_vec(), version)?,
                None => store.create(&object, bytes.to_vec())?,
            };
            return Ok(kept.is_some());
        }
        let folder = self.job(id);
        // A folder that is gone is not made again.
        ensure!(folder.is_dir(), "{id}: the job is gone");
        on_disk(|| {
            let place = folder.join(ANNOTATIONS);
            let mut file = atomic_write::create(&place)?;
            file.write_all(bytes)?;
            atomic_write::commit(file, &place)
        })?;
        Ok(true)
    }

    /// Location of its checkpoints; empty: among its results.
    pub fn checkpoints(&self, id: JobId) -> String {
        self.remote().map_or(String::new(), |remote| remote.store().describe(&object(id, "checkpoints")))
    }

    /// The audit log: who did what.
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

    /// Downloads a file from the object store unless the folder has it.
    fn download(&self, hash: Hash) -> Result<()> {
        let Some(remote) = self.remote().filter(|_| !self.has_here(hash)) else { return Ok(()) };
        let file = self.temporary_file()?;
        remote.download(&file_name(hash), file.path())?;
        let place = || remote.store().describe(&file_name(hash));
        ensure!(hash_of(file.path())? == hash, "{}: its bytes are not those that were put there", place());
        self.put_down(file, hash)
    }

    /// Starts the upload of a file.
    pub fn receive(&self, hash: Hash, size: u64) -> Result<Incoming> {
        let file = self.temporary_file()?;
        Ok(Incoming { file, hasher: blake3::Hasher::new(), hash, size, got: 0 })
    }

    /// Keeps an uploaded file.
    pub fn keep(&self, arrived: Arrived) -> Result<()> {
        if let Some(remote) = self.remote() {
            remote.keep(arrived.hash, arrived.file.path())?;
        }
        self.put_down(arrived.file, arrived.hash)
    }

    fn temporary_file(&self) -> Result<NamedTempFile> {
        on_disk(|| tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(self.folder.join("files")))
    }

    fn put_down(&self, file: NamedTempFile, hash: Hash) -> Result<()> {
        on_disk(|| {
            file.as_file().sync_all()?;
            file.persist(self.file(hash)).map_err(|error| error.error)?;
            sync(&self.folder.join("files"))
        })
    }

    /// A folder that is that of no job yet, with the job file and its inputs.
    pub fn lay_out(&self, job: &str, inputs: &[Input]) -> Result<TempDir> {
        let staging = self.staging_folder()?;
        on_disk(|| fs::write(staging.path().join(JOB), job))?;
        self.lay_inputs(staging.path(), inputs)?;
        Ok(staging)
    }

    fn staging_folder(&self) -> Result<TempDir> {
        on_disk(|| tempfile::Builder::new().prefix(TEMPORARY).tempdir_in(self.folder.join("work")))
    }

    fn lay_inputs(&self, folder: &Path, inputs: &[Input]) -> Result<()> {
        for Input { path, hash } in inputs {
            self.download(*hash)?;
            let place = inputs_in(folder).join(path);
            on_disk(|| {
                place.parent().map_or(Ok(()), fs::create_dir_all)?;
                // Not every file system has links.
                fs::hard_link(self.file(*hash), &place)
                    .or_else(|_| fs::copy(self.file(*hash), &place).map(drop))
            })?;
        }
        Ok(())
    }

    /// The first of the files in the folder of a job whose bytes are not those that were uploaded.
    pub fn damaged<'a>(&self, folder: &Path, inputs: &'a [Input]) -> Result<Option<&'a Input>> {
        let mut whole: BTreeSet<(u64, u64, [u8; 32])> = BTreeSet::new();
        for input in inputs {
            let path = inputs_in(folder).join(&input.path);
            // One file under several names is read once: 64 names of a large one would keep the service busy for minutes.
            let found = fs::metadata(&path).with_context(|| format!("{}: cannot be read", input.path))?;
            if !whole.insert((found.dev(), found.ino(), *input.hash.as_bytes())) {
                continue;
            }
            let hash = hash_of(&path).with_context(|| format!("{}: cannot be read", input.path))?;
            if hash != input.hash {
                return Ok(Some(input));
            }
        }
        Ok(None)
    }

    /// Removes a file whose bytes are damaged from the folder; a copy in the object store stays, and is checked when it is downloaded.
    pub fn remove_damaged(&self, hash: Hash) -> Result<()> {
        on_disk(|| fs::remove_file(self.file(hash)))
    }

    /// Refuses to train a job whose files are not those that were submitted.
    pub fn check(&self, record: &Record) -> Result<()> {
        let folder = self.job(record.id);
        if let Some(Input { path, .. }) = self.damaged(&folder, &record.inputs)? {
            bail!("{path}: its bytes have changed since the job was submitted; submit the job again");
        }
        let job = fs::read(folder.join(JOB)).context("job.toml: cannot be read")?;
        let hash = blake3::hash(&job).to_hex();
        ensure!(
            record.job_blake3.as_ref().is_none_or(|submitted| **submitted == *hash),
            "job.toml: its bytes have changed since the job was submitted; submit the job again"
        );
        Ok(())
    }

    /// Has a folder with all that is in it on disk.
    pub fn sync(&self, staging: &TempDir) -> Result<()> {
        on_disk(|| sync_below(staging.path()))
    }

    /// Makes a folder that is on disk that of a job, where it stays once this returns.
    pub fn settle(&self, staging: TempDir, id: JobId) -> Result<()> {
        if let Some(remote) = self.remote() {
            for name in [JOB, LOG] {
                remote.store().put_file(&object(id, name), &staging.path().join(name))?;
            }
        }
        self.take_place(staging, &self.job(id))
    }

    fn take_place(&self, staging: TempDir, place: &Path) -> Result<()> {
        on_disk(|| fs::rename(staging.path(), place))?;
        let _moved = staging.keep();
        on_disk(|| place.parent().map_or(Ok(()), sync))
    }

    /// Brings the folder of a job from the object store if it is not there: its job file, log and view, without inputs and results.
    pub fn recall(&self, id: JobId) -> Result<()> {
        let Some(remote) = self.remote().filter(|_| !self.job(id).exists()) else { return Ok(()) };
        let staging = self.staging_folder()?;
        for name in [JOB, LOG, VIEW] {
            if let Some(bytes) = remote.store().find(&object(id, name))? {
                on_disk(|| fs::write(staging.path().join(name), bytes))?;
            }
        }
        self.take_place_once(staging, &self.job(id))
    }

    /// Takes a place that another may take at the same moment, with the same things.
    fn take_place_once(&self, staging: TempDir, place: &Path) -> Result<()> {
        self.take_place(staging, place).or_else(|error| if place.exists() { Ok(()) } else { Err(error) })
    }

    /// Brings what a job needs to begin, or to go on, from the object store if it is not there.
    pub fn restore(&self, id: JobId, inputs: &[Input]) -> Result<()> {
        self.recall(id)?;
        let place = inputs_in(&self.job(id));
        if inputs.is_empty() || place.exists() {
            return Ok(());
        }
        let staging = self.staging_folder()?;
        self.lay_inputs(staging.path(), inputs)?;
        on_disk(|| fs::rename(inputs_in(staging.path()), place))
    }

    /// Puts the results of a job into the object store.
    pub fn publish(&self, id: JobId) -> Result<Published> {
        let files = self.list(id)?;
        let checksum = |(path, _): &(String, u64)| {
            Ok((path.clone(), hash_of(&self.results(id).join(path))?.to_hex().to_string()))
        };
        let checksums = files.iter().map(checksum).collect::<Result<_>>()?;
        if let Some(remote) = self.remote() {
            files.iter().try_for_each(|(path, _)| {
                let object = object(id, &format!("{RESULTS}/{path}"));
                remote.store().put_file(&object, &self.results(id).join(path))
            })?;
        }
        Ok((files, checksums))
    }

    /// The results of a job that is done, downloaded if they are not here.
    pub fn results_of(&self, record: &Record) -> Result<Vec<ResultFile>> {
        if record.results.is_empty() {
            let file = |(path, size)| ResultFile { path, size, hash: None };
            return Ok(self.list(record.id)?.into_iter().map(file).collect());
        }
        let checksum = |path: &String| record.checksums.get(path).and_then(|hash| Hash::from_hex(hash).ok());
        let file = |(path, size): &(String, u64)| ResultFile {
            path: path.clone(),
            size: *size,
            hash: checksum(path),
        };
        let files: Vec<ResultFile> = record.results.iter().map(file).collect();
        self.recall_results(record.id, &files)?;
        Ok(files)
    }

    /// Copies log and view of a job that is over to the object store.
    pub fn tell(&self, id: JobId) -> Result<()> {
        let Some(remote) = self.remote() else { return Ok(()) };
        let files = [(LOG, self.log(id)), (VIEW, self.view(id))].into_iter();
        files
            .filter(|(_, file)| file.exists())
            .try_for_each(|(name, file)| remote.store().put_file(&object(id, name), &file))
    }

    /// Removes files that no job reads: they were uploaded for a job that was not submitted.
    pub fn forget_others<'a>(&self, records: impl Iterator<Item = &'a Record>) -> Result<()> {
        let wanted: BTreeSet<String> = names_of(records).collect();
        for entry in fs::read_dir(self.folder.join("files"))? {
            let entry = entry?;
            if !wanted.contains(&format!("files/{}", entry.file_name().to_string_lossy())) {
                fs::remove_file(entry.path())?;
            }
        }
        self.remote().map_or(Ok(()), |remote| remote.forget_others(&wanted))
    }

    /// Removes files, by their names, that no job reads any more.
    pub fn forget(&self, names: &BTreeSet<String>) -> Result<()> {
        for name in names {
            on_disk(|| match fs::remove_file(self.folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            })?;
        }
        self.remote().map_or(Ok(()), |remote| remote.forget(names))
    }

    /// The files of a job's results: paths below their folder, sorted, and sizes; without those that are of no use elsewhere.
    pub fn list(&self, id: JobId) -> Result<Vec<(String, u64)>> {
        if let Some(remote) = self.remote().filter(|_| !self.results(id).exists()) {
            let paths = remote.store().list_below(&object(id, RESULTS))?.into_iter();
            let file = |path| ResultFile { path, size: 0, hash: None };
            self.recall_results(id, &paths.filter(|path| is_safe(path)).map(file).collect::<Vec<_>>())?;
        }
        let folder = self.results(id);
        let mut found = Vec::new();
        let mut folders = vec![folder.clone()];
        while let Some(here) = folders.pop() {
            for entry in fs::read_dir(&here).with_context(|| format!("{id}: no results"))? {
                let entry = entry?;
                let path = entry.path();
                let Some(name) = path.strip_prefix(&folder).ok().and_then(Path::to_str) else { continue };
                let kind = entry.file_type()?;
                let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
                if name == "checkpoints" || is_hidden {
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

    /// Downloads results unless the folder has them.
    fn recall_results(&self, id: JobId, files: &[ResultFile]) -> Result<()> {
        let Some(remote) = self.remote().filter(|_| !self.results(id).exists()) else { return Ok(()) };
        self.recall(id)?;
        let (staging, place) = (self.staging_folder()?, object(id, RESULTS));
        for file in files {
            let object = format!("{place}/{}", file.path);
            let mut checked = Ok(());
            for _ in 0..DOWNLOADS {
                remote.download(&object, &staging.path().join(&file.path))?;
                checked = file.check(staging.path());
                if checked.is_ok() {
                    break;
                }
            }
            checked.with_context(|| remote.store().describe(&object))?;
        }
        self.take_place_once(staging, &self.results(id))
    }
}

/// Locks a folder: itself, so that no removed file lets another service in, and a file in it, as network file systems lock no folders.
fn take_locks(folder: &Path) -> Result<[File; 2]> {
    let taken = || -> Result<[File; 2], TryLockError> {
        let file = File::create(folder.join("lock")).map_err(TryLockError::Error)?;
        file.try_lock()?;
        let this = File::open(folder).map_err(TryLockError::Error)?;
        match this.try_lock() {
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
            // Without locks of folders the file has to do.
            Ok(()) | Err(TryLockError::Error(_)) => Ok([file, this]),
        }
    };
    taken().map_err(|error| match error {
        TryLockError::WouldBlock => anyhow!(
            "{}: another service works there; wait for its end, or choose another folder",
            folder.display()
        ),
        TryLockError::Error(error) => {
            anyhow!(error).context(format!("{}: cannot be locked", folder.display()))
        }
    })
}

impl ResultFile {
    /// Refuses a file in the folder of results whose bytes are not those that the job wrote. Results of earlier versions have no checksum.
    pub fn check(&self, folder: &Path) -> Result<()> {
        let Some(expected) = self.hash else { return Ok(()) };
        ensure!(
            hash_of(&folder.join(&self.path))? == expected,
            "{}: damaged: its bytes are not those that the job wrote; restore the file, or delete the job and submit it again",
            self.path
        );
        Ok(())
    }
}

/// BLAKE3 of a file.
fn hash_of(file: &Path) -> Result<Hash> {
    let mut hasher = blake3::Hasher::new();
    let read = File::open(file).and_then(|file| hasher.update_reader(file).map(drop));
    read.with_context(|| format!("{}: cannot be read", file.display()))?;
    Ok(hasher.finalize())
}

/// Does one step on disk.
fn on_disk<T>(step: impl FnOnce() -> io::Result<T>) -> Result<T> {
    let stepped = || {
        faults::step()?;
        let done = step()?;
        faults::step().map(|()| done)
    };
    stepped().context("the service cannot write; its folder is full, or not its own")
}

/// Has the entries of a folder, or the bytes of a file, on disk.
fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Has a folder with all that is in it on disk.
fn sync_below(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { sync_below(&path)? } else { sync(&path)? }
    }
    sync(folder)
}

/// The names of the files of `deleted` that none of `others` reads.
pub fn unread<'a>(deleted: &[Record], others: impl Iterator<Item = &'a Record>) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = names_of(deleted.iter()).collect();
    for name in names_of(others) {
        names.remove(&name);
    }
    names
}

/// The names of the files that jobs read.
fn names_of<'a>(records: impl Iterator<Item = &'a Record>) -> impl Iterator<Item = String> {
    records.flat_map(|record| &record.inputs).map(|input| file_name(input.hash))
}

/// The name of a file of a job in the object store.
fn object(id: JobId, name: &str) -> String {
    format!("work/{id}/{name}")
}

/// Name of a folder in an object store; it does not change while the folder exists.
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

impl Arrived {
    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
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
        on_disk(|| self.file.write_all(bytes))
    }
}

/// The event log in the folder of a job.
pub fn log_in(folder: &Path) -> PathBuf {
    folder.join(LOG)
}

const LOG: &str = "log.jsonl";
const VIEW: &str = "scene.json";
const ANNOTATIONS: &str = "annotated.txt";

/// Prefix of the names of files that are not complete.
const TEMPORARY: &str = ".new-";

/// Removes what a process left that was killed while it wrote.
fn sweep(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            let path = entry.path();
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::State;
    use crate::record::tests::record;

    fn upload(job_store: &JobStore, bytes: &[u8]) -> Hash {
        let mut incoming = job_store.receive(blake3::hash(bytes), bytes.len() as u64).unwrap();
        bytes.chunks(3).for_each(|piece| incoming.push(piece).unwrap());
        job_store.keep(incoming.finish().unwrap()).unwrap();
        blake3::hash(bytes)
    }

    #[test]
    fn a_kept_cache_serves_the_next_process_and_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let job_store = JobStore::open(dir.path(), None).unwrap();
        let text = upload(&job_store, b"some sentences\n");
        let records: Vec<Record> = [1, 2, 10].map(|id| record(id, State::Queued)).into();
        records.iter().for_each(|record| job_store.records().save(record).unwrap());
        let refused = || JobStore::open(dir.path(), None).err().unwrap().to_string();
        assert!(refused().contains("another service works there"), "{}", refused());
        fs::remove_file(dir.path().join("lock")).unwrap();
        assert!(refused().contains("another service works there"), "{}", refused());
        drop(job_store);
        std::fs::write(dir.path().join("files/.new-1"), "half").unwrap();
        let job_store = JobStore::open(dir.path(), None).unwrap();
        let mut found = job_store.records().read().unwrap().records;
        found.sort_unstable_by_key(|record| record.id);
        assert_eq!(found, records);
        assert!(job_store.has(text) && !dir.path().join("files/.new-1").exists());
        job_store.forget_others(records.iter()).unwrap();
        assert!(!job_store.has(text));
    }

    #[test]
    fn only_what_was_announced_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let job_store = JobStore::open(dir.path(), None).unwrap();
        let (bytes, other) = (&b"12345"[..], blake3::hash(b"54321"));
        let mut more = job_store.receive(blake3::hash(bytes), 4).unwrap();
        assert!(more.push(bytes).unwrap_err().to_string().contains("more bytes than the 4"));
        let mut fewer = job_store.receive(blake3::hash(bytes), 6).unwrap();
        fewer.push(bytes).unwrap();
        assert!(fewer.finish().err().unwrap().to_string().contains("5 of 6 bytes"));
        let mut others = job_store.receive(other, 5).unwrap();
        others.push(bytes).unwrap();
        assert!(others.finish().err().unwrap().to_string().contains("not those that were announced"));
        drop(more);
        assert!(!job_store.has(other) && !job_store.has(blake3::hash(bytes)));
        assert_eq!(fs::read_dir(dir.path().join("files")).unwrap().count(), 0);
    }

    #[test]
    fn a_job_has_its_files_under_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let job_store = JobStore::open(dir.path(), None).unwrap();
        let text = upload(&job_store, b"text");
        let inputs = ["corpus.txt", "more/of it.txt"].map(|path| Input { path: path.into(), hash: text });
        let staging = job_store.lay_out("[model]\n", &inputs).unwrap();
        job_store.settle(staging, JobId(1)).unwrap();
        let inputs = inputs_in(&job_store.job(JobId(1)));
        assert_eq!(fs::read(inputs.join("more/of it.txt")).unwrap(), b"text");
        let out = job_store.results(JobId(1));
        fs::create_dir_all(out.join("checkpoints")).unwrap();
        fs::create_dir_all(out.join("model")).unwrap();
        for name in ["summary.json", "model/model.bin", "model/.writing-1", "checkpoints/1.ckpt", ".shards-1"]
        {
            fs::write(out.join(name), name).unwrap();
        }
        assert_eq!(
            job_store.list(JobId(1)).unwrap(),
            [("model/model.bin".into(), 15), ("summary.json".into(), 12)]
        );
        assert!(job_store.list(JobId(2)).is_err());
    }
}
