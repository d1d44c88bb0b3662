//! Files on their way to somebody who may read slowly, but has to read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use prost::bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;

/// Messages that may wait for a slow reader.
const UNDER_WAY: usize = 4;

/// The sending end, for a thread that may block.
pub struct Outgoing<T> {
    messages: mpsc::Sender<T>,
    runtime: Handle,
    timeout: Duration,
}

impl<T> Outgoing<T> {
    /// To a reader who is waited for at most `timeout` at a time; and the other end. To be called within a runtime.
    pub fn new(timeout: Duration) -> (Outgoing<T>, ReceiverStream<T>) {
        let (messages, stream) = mpsc::channel(UNDER_WAY);
        (Outgoing { messages, runtime: Handle::current(), timeout }, ReceiverStream::new(stream))
    }

    /// Sends a message; whether the reader is still there.
    pub fn send(&self, message: T) -> bool {
        let sent = async { timeout(self.timeout, self.messages.send(message)).await };
        self.runtime.block_on(sent).is_ok_and(|sent| sent.is_ok())
    }

    /// Sends the first `size` bytes of a file in pieces of at most `piece` bytes; whether the reader is still there.
    pub fn send_file(
        &self,
        path: &Path,
        size: u64,
        piece: usize,
        message: impl Fn(Bytes) -> T,
    ) -> io::Result<bool> {
        let mut file = File::open(path)?.take(size);
        loop {
            let mut bytes = Vec::with_capacity(piece);
            match (&mut file).take(piece as u64).read_to_end(&mut bytes)? {
                0 => return Ok(true),
                _ if !self.send(message(bytes.into())) => return Ok(false),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt as _;

    use super::*;

    const HASTY: Duration = Duration::from_millis(50);

    #[test]
    fn a_reader_gets_all_and_one_who_does_not_read_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let bytes: Vec<u8> = (0..1000u32).map(|at| at as u8).collect();
        std::fs::write(&file, &bytes).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let begin = |timeout| runtime.block_on(async { Outgoing::<Bytes>::new(timeout) });

        let (outgoing, stream) = begin(HASTY * 1000);
        let read = runtime.spawn(stream.collect::<Vec<Bytes>>());
        assert!(outgoing.send_file(&file, 990, 100, |piece| piece).unwrap());
        drop(outgoing);
        assert_eq!(runtime.block_on(read).unwrap().concat(), bytes[..990]);

        let (outgoing, stream) = begin(HASTY);
        assert!(!outgoing.send_file(&file, 990, 100, |piece| piece).unwrap(), "it is not read");
        drop(stream);
        assert!(!outgoing.send(Bytes::new()), "the reader is gone");
        assert!(outgoing.send_file(&dir.path().join("none"), 1, 1, |piece| piece).is_err());
    }
}
