//! Downloads of the results of a job of a service.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use basics::atomic_write;
use basics::paths::is_safe;
use proto::v1::file_message::Message;
use proto::v1::{self, FileHead};
use tempfile::NamedTempFile;
use training::output;

use crate::connection::Way;

/// The last file to be written, as with `train`: if it exists, the result is complete.
const SUMMARY: &str = "summary.json";

/// Downloads the results of a job to the folder `out`, and returns the paths of its files.
pub async fn download(way: &Way, id: u64, out: &Path, overwrite: bool) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(out).with_context(|| format!("{}: cannot write there", out.display()))?;
    ensure!(
        overwrite || !out.join(SUMMARY).exists(),
        "{}: the folder has a finished result; replace it with --overwrite, or choose another folder with --out DIR",
        out.display()
    );
    let _lock = output::lock(out)?;
    let mut files = Files { out, open: None, summary: None, written: Vec::new() };
    let mut failed = None;
    way.ask(async |jobs| {
        let mut messages = jobs.fetch(v1::FetchRequest { id }).await?.into_inner();
        while let Some(message) = messages.message().await? {
            failed = message.message.and_then(|message| files.take(message).err());
            if failed.is_some() {
                break;
            }
        }
        Ok(())
    })
    .await?;
    failed.map_or(Ok(()), Err)?;
    files.finish()
}

/// Receives files; each has a temporary name until it is complete.
struct Files<'a> {
    out: &'a Path,
    open: Option<Incoming>,
    summary: Option<NamedTempFile>,
    written: Vec<PathBuf>,
}

/// A file that arrives.
struct Incoming {
    head: FileHead,
    file: NamedTempFile,
    got: u64,
    hasher: blake3::Hasher,
}

impl Files<'_> {
    fn take(&mut self, message: Message) -> Result<()> {
        match message {
            Message::Head(head) => {
                self.close()?;
                // The service is not trusted: its paths are checked.
                ensure!(is_safe(&head.path), "{:?}: not a path below the folder of results", head.path);
                let place = self.out.join(&head.path);
                let file = atomic_write::create(&place).with_context(|| refused(&place))?;
                self.open = Some(Incoming { head, file, got: 0, hasher: blake3::Hasher::new() });
            }
            Message::Data(data) => {
                let Some(Incoming { head, file, got, hasher }) = &mut self.open else {
                    bail!("the service sent bytes before the name of a file")
                };
                *got += data.len() as u64;
                hasher.update(&data);
                file.write_all(&data).with_context(|| refused(&self.out.join(&head.path)))?;
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let Some(Incoming { head, file, got, hasher }) = self.open.take() else { return Ok(()) };
        ensure!(got == head.size, "{}: {got} of {} bytes came; fetch again", head.path, head.size);
        ensure!(
            head.blake3.is_empty() || head.blake3[..] == *hasher.finalize().as_bytes(),
            "{}: damaged: its bytes are not those that the job wrote; fetch again, and if that does not help, have the file restored in the \
             service's store, or submit the job again",
            head.path
        );
        if head.path == SUMMARY {
            self.summary = Some(file);
            return Ok(());
        }
        self.place(&head.path, file)
    }

    fn place(&mut self, path: &str, file: NamedTempFile) -> Result<()> {
        if self.written.is_empty() {
            self.remove_summary()?;
        }
        let place = self.out.join(path);
        atomic_write::commit(file, &place).with_context(|| refused(&place))?;
        self.written.push(place);
        Ok(())
    }

    /// Replaces a file of an earlier result, which is incomplete from then on.
    fn remove_summary(&self) -> Result<()> {
        let summary = self.out.join(SUMMARY);
        match fs::remove_file(&summary) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| refused(&summary))
            }
            _ => Ok(()),
        }
    }

    fn finish(mut self) -> Result<Vec<PathBuf>> {
        self.close()?;
        let Some(summary) = self.summary.take() else { bail!("the service sent no {SUMMARY}; fetch again") };
        self.place(SUMMARY, summary)?;
        Ok(self.written)
    }
}

fn refused(place: &Path) -> String {
    format!(
        "{}: cannot be written; free space or make it writable, or choose another folder with --out DIR",
        place.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(path: &str, size: u64) -> Message {
        Message::Head(FileHead { path: path.into(), size, ..Default::default() })
    }

    /// Whichever byte of a file with a checksum changes on its way, or is missing: the file is named and does not take its place.
    #[test]
    fn a_damaged_file_is_named_and_not_kept() {
        let bytes = b"parameters";
        let dir = tempfile::tempdir().unwrap();
        for at in 0..=bytes.len() {
            let mut files = Files { out: dir.path(), open: None, summary: None, written: Vec::new() };
            let (path, blake3) = ("model.bin".to_owned(), blake3::hash(bytes).as_bytes().to_vec().into());
            let mut sent = bytes.to_vec();
            sent.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1);
            files.take(Message::Head(FileHead { path, size: bytes.len() as u64, blake3 })).unwrap();
            files.take(Message::Data(sent.into())).unwrap();
            let closed = files.close();
            assert_eq!(closed.is_ok(), at == bytes.len());
            assert_eq!(dir.path().join("model.bin").exists(), at == bytes.len());
            if let Err(error) = closed {
                assert!(error.to_string().starts_with("model.bin: damaged"), "{error}");
            }
        }
    }

    #[test]
    fn the_summary_comes_last_and_only_whole_files_come_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let files = || Files { out: dir.path(), open: None, summary: None, written: Vec::new() };
        let mut cut = files();
        for message in [head(SUMMARY, 2), Message::Data("{}".into()), head("model/model.bin", 3)] {
            cut.take(message).unwrap();
        }
        cut.take(Message::Data("ab".into())).unwrap();
        fs::write(dir.path().join(SUMMARY), "earlier").unwrap();
        assert!(cut.finish().unwrap_err().to_string().contains("2 of 3 bytes"));
        assert!(
            dir.path().join(SUMMARY).exists(),
            "an earlier result stays until a file of the new one is complete"
        );
        let mut all = files();
        for message in [head(SUMMARY, 2), Message::Data("{}".into()), head("model/model.bin", 0)] {
            all.take(message).unwrap();
        }
        assert_eq!(all.finish().unwrap(), ["model/model.bin", SUMMARY].map(|name| dir.path().join(name)));
        for path in ["../x", "/x", "a/../../x"] {
            assert!(files().take(head(path, 1)).is_err(), "{path}");
        }
    }
}
