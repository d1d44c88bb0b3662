//! The shuffle of candidate strings: what workers counted in their shards, summed string by string in bounded memory.
//!
//! In: the counts of one shard after the other. Out: their sums, in any order. Each string belongs to one of `PARTITIONS`, by a hash; a
//! partition is a run of records in the order in which they came, in memory or, beyond the budget, in pieces of a file. At the end each
//! partition is summed by itself, in the order of the shards: neither budget nor partitions change a bit.
//!
//! A record is the length of its key as a varint, the key, and an `f64`; a key is nonterminal and string as varints.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHasher};

use crate::grammar::SymbolId;
use crate::work::task::StringCounts;

/// Runs of strings that are summed each by itself: as many as are needed for one of them to be small when all are large.
const PARTITIONS: usize = 1024;

/// Bytes of records, about, that are summed at a time: tables that fit into a cache, one after the other, are filled faster than
/// a large one.
const PART: usize = 1 << 20;

/// Counts of candidate strings so far.
pub struct Shuffle {
    /// Folder of the file.
    folder: PathBuf,
    /// Bytes of records in memory beyond which they are written to the file.
    budget: usize,
    buffered: usize,
    partitions: Vec<Partition>,
    /// A file without a name, which ends with the process.
    file: Option<File>,
    /// Its length.
    written: u64,
    key: Vec<u8>,
    /// [`PART`].
    part: usize,
}

#[derive(Default)]
struct Partition {
    /// Pieces of the file, before the buffer.
    pieces: Vec<Range<u64>>,
    buffer: Vec<u8>,
}

impl Shuffle {
    /// An empty shuffle with room for `budget` bytes in memory and a file in `folder` beyond.
    pub fn new_in(folder: &Path, budget: usize) -> Shuffle {
        let partitions = (0..PARTITIONS).map(|_| Partition::default()).collect();
        let (folder, key) = (folder.to_owned(), Vec::new());
        Shuffle { folder, budget, buffered: 0, partitions, file: None, written: 0, key, part: PART }
    }

    /// Adds the amounts of the next shard; shards come in order.
    pub fn add(&mut self, counted: &StringCounts) -> io::Result<()> {
        let key = &mut self.key;
        for (symbol, string, amount) in counted.iter() {
            key.clear();
            put_varint(symbol.0, key);
            string.iter().for_each(|token| put_varint(token.0, key));
            let buffer = &mut self.partitions[hash(key) % PARTITIONS].buffer;
            let before = buffer.len();
            put_varint(key.len() as u32, buffer);
            buffer.extend_from_slice(key);
            buffer.extend_from_slice(&amount.to_le_bytes());
            self.buffered += buffer.len() - before;
        }
        if self.buffered > self.budget { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                std::fs::create_dir_all(&self.folder)?;
                self.file.insert(tempfile::tempfile_in(&self.folder)?)
            }
        };
        for Partition { pieces, buffer } in &mut self.partitions {
            file.write_all(buffer)?;
            pieces.push(self.written..self.written + buffer.len() as u64);
            self.written += buffer.len() as u64;
            buffer.clear();
        }
        self.buffered = 0;
        Ok(())
    }

    /// Adds the sums of all strings to `total`: on all cores, each partition is summed and added to a value like `empty`, which is then
    /// merged. So there is one total, however many cores there are; the order of the partitions differs from run to run.
    pub fn fold<T: Send>(
        self,
        total: &mut T,
        empty: impl Fn() -> T + Sync + Send,
        add: impl Fn(&mut T, SymbolId, &[SymbolId], f64) + Sync,
        merge: impl Fn(&mut T, T) + Sync,
    ) -> io::Result<()> {
        let (part, file, total) = (self.part, self.file, Mutex::new(total));
        self.partitions.into_par_iter().try_for_each(|partition| {
            let parts = partition.parts(file.as_ref(), part)?;
            let (mut folded, mut string) = (empty(), Vec::new());
            for part in parts {
                for (mut key, sum) in sums(&part)? {
                    string.clear();
                    while !key.is_empty() {
                        string.push(SymbolId(take_varint(&mut key).ok_or_else(cut)?));
                    }
                    add(&mut folded, string[0], &string[1..], sum);
                }
            }
            merge(&mut total.lock(), folded);
            Ok(())
        })
    }
}

impl Partition {
    /// Its records, dealt out by string into parts of about `part` bytes; in each in the order in which they came.
    fn parts(self, file: Option<&File>, part: usize) -> io::Result<Vec<Vec<u8>>> {
        let Partition { pieces, buffer } = self;
        let in_file: u64 = pieces.iter().map(|piece| piece.end - piece.start).sum();
        let n_parts = (in_file as usize + buffer.len()) / part + 1;
        let mut parts = vec![Vec::new(); n_parts];
        let mut deal = |records: &[u8]| -> io::Result<()> {
            let mut rest = records;
            while !rest.is_empty() {
                let (record, key) = record(&mut rest)?;
                parts[hash(key) / PARTITIONS % n_parts].extend_from_slice(record);
            }
            Ok(())
        };
        let mut piece = Vec::new();
        for at in pieces {
            piece.resize((at.end - at.start) as usize, 0);
            file.ok_or_else(cut)?.read_exact_at(&mut piece, at.start)?;
            deal(&piece)?;
        }
        deal(&buffer)?;
        Ok(parts)
    }
}

/// Keys and their sums, each once.
fn sums(mut records: &[u8]) -> io::Result<impl Iterator<Item = (&[u8], f64)>> {
    let mut sums: FxHashMap<&[u8], f64> = FxHashMap::default();
    while !records.is_empty() {
        let (record, key) = record(&mut records)?;
        let amount = record.last_chunk().copied().ok_or_else(cut)?;
        *sums.entry(key).or_default() += f64::from_le_bytes(amount);
    }
    Ok(sums.into_iter())
}

/// The first record, and its key; `records` goes on behind it.
fn record<'a>(records: &mut &'a [u8]) -> io::Result<(&'a [u8], &'a [u8])> {
    let mut rest = *records;
    let length = take_varint(&mut rest).ok_or_else(cut)? as usize;
    let start = records.len() - rest.len();
    let (record, rest) = records.split_at_checked(start + length + size_of::<f64>()).ok_or_else(cut)?;
    *records = rest;
    Ok((record, &record[start..start + length]))
}

/// The error of records that do not end where they should.
fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a record is cut short")
}

/// Says where a string belongs.
fn hash(key: &[u8]) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write(key);
    hasher.finish() as usize
}

/// Appends a number in LEB128: seven bits a byte, the lowest first.
fn put_varint(mut number: u32, buffer: &mut Vec<u8>) {
    while number >= 0x80 {
        buffer.push(number as u8 | 0x80);
        number >>= 7;
    }
    buffer.push(number as u8);
}

/// Takes such a number from the front.
fn take_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::models::adaptor::candidates::Ranking;
    use crate::num::Noise;

    use super::*;

    #[test]
    fn partitions_have_similar_sizes() {
        let mut sizes = [0; PARTITIONS];
        // Short strings of few symbols, all of them.
        for number in 0..200_000u32 {
            let key = format!("\u{3}{number}");
            sizes[hash(key.as_bytes()) % PARTITIONS] += 1;
        }
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        assert!(*least > 120 && *most < 280, "{least} to {most}, 195 on average");
    }

    #[test]
    fn neither_budget_nor_threads_change_a_bit() {
        // Sums of many terms, so that another order gives other bits, and other strings.
        let noise = Noise::new(7, 0);
        let shard = |at: usize| -> StringCounts {
            let mut found = StringCounts::default();
            for within in 0..90 {
                let number = (at * 131 + within * 17) % 700;
                let string: Vec<SymbolId> =
                    format!("{number}").bytes().map(|byte| SymbolId(u32::from(byte) + 200)).collect();
                let amount = 1.0 + noise.symmetric((at * 1000 + within) as u64);
                found.push(SymbolId(1 + (number % 2) as u32), &string, amount);
            }
            found
        };
        let adapted = [SymbolId(1), SymbolId(2)];
        let dir = tempfile::tempdir().unwrap();
        let top = |budget: usize, part: usize| {
            let mut shuffle = Shuffle::new_in(dir.path(), budget);
            shuffle.part = part;
            (0..200).for_each(|at| shuffle.add(&shard(at)).unwrap());
            let spilled = shuffle.written;
            let empty = || Ranking::new(&adapted, 100, -0.2);
            let mut ranking = empty();
            shuffle.fold(&mut ranking, empty, Ranking::add, Ranking::merge).unwrap();
            (ranking.top(), spilled)
        };
        let mut sums: BTreeMap<(SymbolId, Vec<SymbolId>), f64> = BTreeMap::new();
        for found in (0..200).map(shard) {
            for (symbol, string, expected) in found.iter() {
                *sums.entry((symbol, string.to_vec())).or_default() += expected;
            }
        }
        let mut ranking = Ranking::new(&adapted, 100, -0.2);
        sums.iter().for_each(|((symbol, string), &sum)| ranking.add(*symbol, string, sum));
        let expected = ranking.top();
        let ((in_memory, none), (in_file, most)) = (top(usize::MAX, PART), top(1000, 50));
        assert_eq!((&in_memory, &in_file), (&expected, &expected));
        assert!(none == 0 && most > 200_000, "{none} and {most} bytes spilled");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file has no name");
    }
}
