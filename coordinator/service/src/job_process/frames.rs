//! Frames on a pipe: a message and a payload each, with their lengths before them.
//!
//! Invariant: memory grows with the bytes that arrive, not with the lengths that are announced.

use std::io::{self, BufWriter, Read, Write};

use parking_lot::Mutex;
use prost::bytes::Bytes;
use proto::payload::MAX_PAYLOAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Largest message in bytes: the needs of four million tasks.
const MAX_MESSAGE: u64 = 256 << 20;

/// The writing end of a pipe. Threads take turns.
pub struct Sender(Mutex<BufWriter<Box<dyn Write + Send>>>);

impl Sender {
    /// Writes to `pipe`.
    pub fn new(pipe: Box<dyn Write + Send>) -> Sender {
        Sender(Mutex::new(BufWriter::new(pipe)))
    }

    /// Sends a frame; an error if the other process is gone.
    pub fn send(&self, message: &impl Serialize, payload: &[u8]) -> io::Result<()> {
        let message =
            bincode::serde::encode_to_vec(message, bincode::config::standard()).map_err(io::Error::other)?;
        let mut pipe = self.0.lock();
        pipe.write_all(&(message.len() as u64).to_le_bytes())?;
        pipe.write_all(&(payload.len() as u64).to_le_bytes())?;
        pipe.write_all(&message)?;
        pipe.write_all(payload)?;
        pipe.flush()
    }
}

/// Receives the next frame; `None` at the end of the pipe. A pipe that ends within a frame is an error.
pub fn receive<M: DeserializeOwned>(pipe: &mut impl Read) -> io::Result<Option<(M, Bytes)>> {
    let mut lengths = [[0; 8]; 2];
    let first = pipe.read(&mut lengths[0])?;
    if first == 0 {
        return Ok(None);
    }
    pipe.read_exact(&mut lengths[0][first..])?;
    pipe.read_exact(&mut lengths[1])?;
    let [message, payload] = lengths.map(u64::from_le_bytes);
    let message = exactly(pipe, message, MAX_MESSAGE)?;
    let payload = exactly(pipe, payload, MAX_PAYLOAD)?;
    let (message, _) =
        bincode::serde::decode_from_slice(&message, bincode::config::standard()).map_err(io::Error::other)?;
    Ok(Some((message, payload.into())))
}

fn exactly(pipe: &mut impl Read, length: u64, most: u64) -> io::Result<Vec<u8>> {
    if length > most {
        return Err(io::Error::other(format!("a frame of {length} bytes, expected {most} at most")));
    }
    let mut bytes = Vec::new();
    pipe.by_ref().take(length).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(std::sync::Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    proptest! {
        /// Frames arrive as they were sent, and a pipe that ends within a frame gives all frames before and then an error.
        #[test]
        fn frames_arrive_whole_or_not_at_all(
            frames in prop::collection::vec((prop::collection::vec(".{0,9}", 0..4), prop::collection::vec(any::<u8>(), 0..9)), 0..5),
            cut: prop::sample::Index,
        ) {
            let written = Written::default();
            let sender = Sender::new(Box::new(written.clone()));
            let mut ends = vec![0];
            for (message, payload) in &frames {
                sender.send(message, payload).unwrap();
                ends.push(written.0.lock().len());
            }
            let bytes = written.0.lock().clone();
            let cut = cut.index(bytes.len() + 1);
            let mut pipe = &bytes[..cut];
            let whole = ends.iter().filter(|&&end| end <= cut).count() - 1;
            for (message, payload) in &frames[..whole] {
                let (found, with) = receive::<Vec<String>>(&mut pipe).unwrap().unwrap();
                prop_assert_eq!((&found, &with[..]), (message, &payload[..]));
            }
            let rest = receive::<Vec<String>>(&mut pipe);
            prop_assert_eq!(rest.is_ok(), ends.contains(&cut));
        }
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_the_bytes() {
        let frame = [u64::MAX.to_le_bytes(), 0_u64.to_le_bytes()].concat();
        let error = receive::<u8>(&mut &frame[..]).unwrap_err().to_string();
        assert!(error.contains("expected 268435456 at most"), "{error}");
    }
}
