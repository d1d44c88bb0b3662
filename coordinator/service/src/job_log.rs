//! The log of a job, line by line, in a file, and a notifier of new lines for clients that follow it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::record::Millis;

/// A line of a job log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Time.
    #[serde(rename = "millis")]
    pub at: Millis,
    /// Text of the line.
    pub text: String,
}

/// Rings when something changes; counts how often it did.
#[derive(Clone, Debug)]
pub struct Notifier(Arc<watch::Sender<u64>>);

impl Default for Notifier {
    fn default() -> Notifier {
        Notifier(Arc::new(watch::Sender::new(0)))
    }
}

impl Notifier {
    /// Tells all who listen.
    pub fn ring(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// A way to wait for it.
    pub fn listen(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

/// Where lines are put. That one cannot be written is no reason for the job to fail.
#[derive(Clone)]
pub struct JobLog {
    path: PathBuf,
    notifier: Notifier,
}

impl JobLog {
    /// The log at `path`; `notifier` rings with every line.
    pub fn new(path: PathBuf, notifier: Notifier) -> JobLog {
        JobLog { path, notifier }
    }

    /// Adds a line.
    pub fn tell(&self, at: Millis, text: &str) {
        let mut line = serde_json::to_vec(&Line { at, text: text.to_owned() }).unwrap_or_default();
        line.push(b'\n');
        let written = File::options()
            .create(true)
            .append(true)
            .open(&self.path)
            .and_then(|mut file| file.write_all(&line));
        if let Err(error) = written {
            tracing::warn!(path = %self.path.display(), %error, "cannot write to a job's log");
        }
        self.notifier.ring();
    }
}

/// Reads a job log, and later what has been added to it.
pub struct Reader {
    path: PathBuf,
    /// Bytes read.
    at: u64,
}

impl Reader {
    /// From the beginning of the job log at `path`, which need not be there yet.
    pub fn new(path: PathBuf) -> Reader {
        Reader { path, at: 0 }
    }

    /// The next lines since the last time, some 16 KiB of them; none at the end. What a process left half written when it was killed is left
    /// out.
    pub fn read(&mut self) -> io::Result<Vec<Line>> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(self.at))?;
        let mut file = BufReader::new(file);
        loop {
            let mut bytes = Vec::new();
            (&mut file).take(PIECE).read_to_end(&mut bytes)?;
            file.read_until(b'\n', &mut bytes)?;
            let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
            self.at += end as u64;
            let lines = bytes[..end].split(|&byte| byte == b'\n');
            let lines: Vec<Line> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
            if end == 0 || !lines.is_empty() {
                return Ok(lines);
            }
        }
    }
}

/// The last `n` lines of the job log at `path`, without reading much more of it.
pub fn last(path: &Path, n: usize) -> io::Result<Vec<Line>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let size = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    // The first may be half a line, which is left out.
    let mut lines: Vec<Line> =
        tail.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    lines.drain(..lines.len().saturating_sub(n));
    Ok(lines)
}

/// Bytes in which the last lines are looked for.
const TAIL: u64 = 64 << 10;
/// Bytes that are read of a log at a time: a log may have a million lines, and hundreds of readers.
const PIECE: u64 = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_read_in_small_pieces_that_are_all_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let line = |n: u64| Line { at: Millis(n), text: "x".repeat((n * n % 777) as usize) };
        let text: String = (0..2000).map(|n| serde_json::to_string(&line(n)).unwrap() + "\n").collect();
        std::fs::write(&path, text).unwrap();
        let (mut reader, mut read) = (Reader::new(path), Vec::new());
        loop {
            let piece = reader.read().unwrap();
            assert!(piece.iter().map(|line| line.text.len()).sum::<usize>() as u64 <= PIECE);
            if piece.is_empty() { break } else { read.extend(piece) }
        }
        assert!(read.into_iter().eq((0..2000).map(line)));
    }

    #[test]
    fn lines_are_read_from_where_one_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        let mut reader = Reader::new(path.clone());
        let mut texts =
            || -> Vec<String> { reader.read().unwrap().into_iter().map(|line| line.text).collect() };
        assert!(texts().is_empty());
        let notifier = Notifier::default();
        let listener = notifier.listen();
        let job_log = JobLog::new(path.clone(), notifier);
        let append = |text: &[u8]| File::options().append(true).open(&path).unwrap().write_all(text).unwrap();
        job_log.tell(Millis(1), "begun");
        append(b"{\"millis\":2,\"te");
        assert_eq!(texts(), ["begun"]);
        append(b"\n");
        job_log.tell(Millis(3), "a <b> & \"c\"\nd");
        assert_eq!(texts(), ["a <b> & \"c\"\nd"]);
        assert!(texts().is_empty() && listener.has_changed().unwrap());
        let last = |n| -> Vec<String> { last(&path, n).unwrap().into_iter().map(|line| line.text).collect() };
        assert_eq!((&last(1)[..], last(9).len()), (&["a <b> & \"c\"\nd".to_owned()][..], 2));
    }
}
