//! An object as a stream of bytes, for objects that do not fit in memory.

use std::io::{self, Cursor, Read};
use std::pin::Pin;

use anyhow::{Context, Result};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use tokio_stream::{Stream, StreamExt as _};

use super::{ask, reach};

/// Reads the bytes of an object in order. After a broken connection it continues at the same byte, unless the object has changed.
pub struct Download {
    pieces: Pin<Box<dyn Stream<Item = object_store::Result<Vec<u8>>> + Send>>,
    piece: Cursor<Vec<u8>>,
}

impl Download {
    /// Opens the object at `url`. Neither this nor reading may be called within a runtime.
    pub fn open(url: &str) -> Result<Download> {
        let (objects, place) = reach(url)?;
        Download::begin(&*objects, &place).with_context(|| format!("{url}: cannot be read"))
    }

    /// Opens the object at `place`.
    pub(super) fn begin(objects: &dyn ObjectStore, place: &Path) -> Result<Download> {
        let found = ask(0, async { objects.get(place).await })?;
        let pieces = Box::pin(found.into_stream().map(|piece| piece.map(|piece| piece.to_vec())));
        Ok(Download { pieces, piece: Cursor::default() })
    }
}

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.piece.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            let next = async { self.pieces.next().await.transpose() };
            match ask(0, next).map_err(|error| io::Error::other(format!("{error:#}")))? {
                Some(piece) => self.piece = Cursor::new(piece),
                None => return Ok(0),
            }
        }
    }
}
