//! Submission of a job, with the files that it reads.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use basics::human::bytes;
use basics::paths::is_safe;
use basics::{store, streams};
use blake3::Hash;
use fleet::access;
use proto::payload::PIECE;
use proto::v1;
use proto::v1::upload_message::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};
use training::job::Job;

use crate::connection::{Jobs, Refused, Way, code, is_passing};

/// Delay before a call to a service that does not answer is repeated.
const AGAIN: Duration = Duration::from_secs(1);
/// Total size of uploads from which progress is reported, in bytes.
const LARGE: u64 = 64 << 20;

/// How a service is to treat a job; what is not said is left to it.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Name of the job.
    pub name: Option<String>,
    /// Share of the workers relative to other jobs, 1 to 100.
    pub priority: Option<u32>,
    /// Maximum number of workers at a time.
    pub max_workers: Option<u32>,
    /// Unique key; submitting again with the same key returns the same job.
    pub idempotency_key: Option<String>,
}

/// Submits `job`, read from the file `job_file`, with the files that it reads, which are returned as well.
pub async fn send(
    way: &Way,
    mut job: Job,
    job_file: &Path,
    wishes: Wishes,
) -> Result<(v1::JobInfo, Vec<Packed>)> {
    let files = pack(&mut job, job_file)?;
    // A key of its own lets a call that failed be repeated.
    let unique = || access::secret().context("the operating system gives no random bytes");
    let request = v1::SubmitRequest {
        job: job.to_toml_as_it_is(),
        inputs: files.iter().map(Packed::to_wire).collect(),
        name: wishes.name.unwrap_or_else(|| name_of(job_file)),
        priority: wishes.priority.unwrap_or(0),
        max_workers: wishes.max_workers.unwrap_or(0),
        key: wishes.idempotency_key.map_or_else(unique, Ok)?,
    };
    match submit(way, &request, &files).await {
        Ok(info) => Ok((info, files)),
        Err(error) if code(&error) == Some(Code::InvalidArgument) => {
            let text = with_places(&error.to_string(), &files);
            Err(Refused(Status::invalid_argument(text)).into())
        }
        Err(error) => Err(error),
    }
}

/// Folder of files that are not below the folder of the job.
const ELSEWHERE: &str = "elsewhere/";

/// An input file of a job.
pub struct Packed {
    /// Path in the job file.
    path: String,
    /// Path on this machine.
    place: PathBuf,
    hash: Hash,
    size: u64,
}

impl Packed {
    fn to_wire(&self) -> v1::JobInput {
        v1::JobInput { path: self.path.clone(), hash: self.hash.as_bytes().to_vec().into() }
    }

    fn head(&self) -> v1::InputFile {
        v1::InputFile { hash: self.hash.as_bytes().to_vec().into(), size: self.size }
    }
}

/// A text of the service with the files' places on this machine, where they have other paths there.
pub fn with_places(text: &str, files: &[Packed]) -> String {
    let renamed = files.iter().filter(|file| file.path.starts_with(ELSEWHERE));
    renamed.fold(text.to_owned(), |text, file| text.replace(&file.path, &file.place.display().to_string()))
}

/// Returns the input files of a job, and changes their paths in the job to paths relative to its folder.
fn pack(job: &mut Job, job_file: &Path) -> Result<Vec<Packed>> {
    let folder = job_file.parent().unwrap_or(Path::new(""));
    let mut names: BTreeMap<PathBuf, String> = BTreeMap::new();
    job.visit_files(&mut |_, path| {
        if store::url(path).is_some() {
            return;
        }
        let below = path.strip_prefix(folder).ok().and_then(Path::to_str).filter(|path| is_safe(path));
        let (n, file) = (names.len(), path.file_name().unwrap_or_default().to_string_lossy());
        let name = names.entry(path.clone()).or_insert_with(|| match below {
            Some(below) => below.to_owned(),
            None => format!("{ELSEWHERE}{n}/{file}"),
        });
        *path = PathBuf::from(&*name);
    });
    (job.output.dir, job.output.checkpoints) = ("out".into(), String::new());
    names.into_iter().map(|(place, path)| file(place, path)).collect()
}

fn file(place: PathBuf, path: String) -> Result<Packed> {
    // A model may be given as its folder.
    let candidates = [place.join("model.bin"), place.join("model/model.bin"), place];
    let [.., last] = &candidates;
    let place = candidates.iter().find(|place| place.is_file()).unwrap_or(last).clone();
    let mut hasher = blake3::Hasher::new();
    let read = File::open(&place).and_then(|file| hasher.update_reader(file).map(|hasher| hasher.count()));
    let size = read.with_context(|| format!("{}: cannot be read", place.display()))?;
    Ok(Packed { path, place, hash: hasher.finalize(), size })
}

/// Default name: the name of the file, or of its folder if the file has the common name.
fn name_of(job: &Path) -> String {
    let absolute = std::path::absolute(job).unwrap_or_else(|_| job.to_owned());
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = match stem(&absolute) {
        Some(name) if name == "job" => absolute.parent().and_then(stem),
        name => name,
    };
    let name: String =
        name.unwrap_or_default().chars().filter(|letter| !letter.is_control()).take(100).collect();
    if name.is_empty() { "job".into() } else { name }
}

/// Uploads the files that the service lacks, and the job. After its first answer, calls are repeated while the service does not answer.
async fn submit(way: &Way, request: &v1::SubmitRequest, files: &[Packed]) -> Result<v1::JobInfo> {
    let (mut reached, mut said) = (false, false);
    loop {
        let answer = way.ask(async |jobs| {
            upload(jobs, files, &mut reached).await?;
            if files.iter().map(|file| file.size).sum::<u64>() >= LARGE {
                streams::tell("the service reads the files to check the job");
            }
            Ok(jobs.submit(request.clone()).await?.into_inner())
        });
        match answer.await {
            // The service may delete a file between its upload and the submission.
            Err(error) if code(&error) == Some(Code::Aborted) => {}
            Err(error) if is_passing(&error) && reached => {
                if !said {
                    streams::tell(&format!("{error:#}; trying again"));
                }
                said = true;
            }
            answer => return answer,
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn upload(jobs: &mut Jobs, files: &[Packed], reached: &mut bool) -> Result<(), Status> {
    let request = v1::LackingRequest { files: files.iter().map(Packed::head).collect() };
    let lacking = jobs.lacking(request).await?.into_inner().hashes;
    *reached = true;
    for file in files.iter().filter(|file| lacking.iter().any(|hash| hash[..] == file.hash.as_bytes()[..])) {
        if file.size >= LARGE {
            streams::tell(&format!("sending {} ({})", file.place.display(), bytes(file.size)));
        }
        let (messages, stream) = mpsc::channel(4);
        let (head, place) = (Message::Head(file.head()), file.place.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let send = |message| messages.blocking_send(v1::UploadMessage { message: Some(message) }).is_ok();
            let mut file = File::open(place)?;
            let mut goes_on = send(head);
            while goes_on {
                let mut piece = Vec::with_capacity(PIECE);
                goes_on = (&mut file).take(PIECE as u64).read_to_end(&mut piece)? > 0
                    && send(Message::Data(piece.into()));
            }
            Ok::<(), std::io::Error>(())
        });
        let uploaded = jobs.upload(ReceiverStream::new(stream)).await;
        if let Ok(Err(error)) = reading.await {
            return Err(Status::internal(format!("{}: cannot be read: {error}", file.path)));
        }
        uploaded.map_err(|refusal| match refusal.code() {
            Code::InvalidArgument => {
                Status::invalid_argument(format!("{}: {}", file.place.display(), refusal.message()))
            }
            _ => refusal,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_called_as_below_the_job_and_others_anew() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("here");
        std::fs::create_dir_all(folder.join("data")).unwrap();
        let [other, test] = ["other.txt", "test.txt"].map(|name| dir.path().join(name));
        for path in [&folder.join("data/corpus.txt"), &other, &test, &folder.join("grammar.gr")] {
            std::fs::write(path, path.display().to_string()).unwrap();
        }
        let text = "[model]\ngrammar = \"grammar.gr\"\n[corpus]\npath = \"data/corpus.txt\"\nheld_out = \"../other.txt\"\ntest = \"../test.txt\"\n";
        let job_file = folder.join("job.toml");
        std::fs::write(&job_file, text).unwrap();
        let mut job = Job::load(&job_file, &[]).unwrap();
        let files = pack(&mut job, &job_file).unwrap();
        let mut paths: Vec<&str> = files.iter().map(|file| &file.path[..]).collect();
        paths.sort_unstable();
        assert_eq!(paths.len(), 4);
        assert_eq!(&paths[..1], ["data/corpus.txt"]);
        assert!(paths[1].starts_with("elsewhere/") && paths[1].ends_with("/other.txt"), "{paths:?}");
        assert!(paths[2].starts_with("elsewhere/") && paths[2].ends_with("/test.txt"), "{paths:?}");
        assert_eq!(paths[3], "grammar.gr");
        assert!(paths.iter().all(|path| is_safe(path)));
        let answer = format!("{}:2: byte 6 is not UTF-8; data/corpus.txt is", paths[1]);
        let expected =
            format!("{}:2: byte 6 is not UTF-8; data/corpus.txt is", folder.join("../other.txt").display());
        assert_eq!(with_places(&answer, &files), expected);
        let sent = Job::parse(&job.to_toml_as_it_is(), "job.toml", Path::new("/there"), &[]).unwrap();
        assert_eq!(sent.corpus.path, Path::new("/there/data/corpus.txt"));
        assert_eq!(sent.output.dir, Path::new("/there/out"));
        assert_eq!(name_of(&job_file), "here");
        assert_eq!(name_of(&folder.join("brent.toml")), "brent");
    }

    #[test]
    fn files_that_vary_are_sent() {
        let dir = tempfile::tempdir().unwrap();
        let job_file = dir.path().join("job.toml");
        let text = "[model]\nkind = \"pcfg\"\ngrammar = \"g\"\n[corpus]\npath = \"c\"\n[inference]\nmethod = \"em\"\nstart = \"trees\"\n\
                    start_from = \"a\"\n[[sweep]]\nstart_from = [\"a\", \"b\"]\n";
        std::fs::write(&job_file, text).unwrap();
        ["a", "b", "c", "g"].iter().for_each(|name| std::fs::write(dir.path().join(name), name).unwrap());
        let mut job = Job::load(&job_file, &[]).unwrap();
        let mut sent: Vec<String> =
            pack(&mut job, &job_file).unwrap().into_iter().map(|packed| packed.path).collect();
        sent.sort();
        assert_eq!(sent, ["a", "b", "c", "g"]);
        let there = Job::parse(&job.to_toml_as_it_is(), "job.toml", Path::new("there"), &[]).unwrap();
        assert_eq!(there.points[1].inference.start_from, Path::new("there/b"));
    }
}
