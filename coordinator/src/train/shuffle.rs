//! The shuffle of candidate strings: what workers counted in their shards, summed string by string in bounded memory.
//!
//! In: the counts of one shard after the other. Out: the best strings. Each string belongs to one of `PARTITIONS`, by a hash; a
//! partition is a run of records in the order in which they came, in memory or, beyond the budget, in a file. At the end each
//! partition is summed by itself, in the order of the shards: neither budget nor partitions change a bit.

use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use prost::bytes::{Buf, BufMut};
use prost::encoding::{decode_varint, encode_varint};
use rayon::prelude::*;
use rustc_hash::FxHasher;
use shared::adaptor::candidates::{Ranking, Tally};
use shared::grammar::SymbolId;
use shared::task::Candidate;

/// Runs of strings that are summed each by itself: as many as are needed for one of them to be small when all are large.
const PARTITIONS: usize = 256;

/// Bytes of records, about, that are summed at a time.
const PART: usize = 1 << 20;

/// What was counted so far.
pub struct Shuffle {
    /// Where files are made.
    folder: PathBuf,
    /// Bytes of records in memory beyond which they are written to files.
    budget: usize,
    buffered: usize,
    partitions: Vec<Partition>,
    /// [`PART`].
    part: usize,
}

#[derive(Default)]
struct Partition {
    /// Records before those of the buffer; it has no name, and goes with the process.
    file: Option<File>,
    buffer: Vec<u8>,
}

impl Shuffle {
    /// Of nothing, with room for `budget` bytes in memory and files in `folder` beyond.
    pub fn new_in(folder: &Path, budget: usize) -> Shuffle {
        let partitions = (0..PARTITIONS).map(|_| Partition::default()).collect();
        Shuffle { folder: folder.to_owned(), budget, buffered: 0, partitions, part: PART }
    }

    /// Adds what was counted in the next shard; shards come in order.
    pub fn add(&mut self, counted: &[Candidate]) -> Result<()> {
        for candidate in counted {
            let Candidate { symbol, string, expected } = candidate;
            let buffer = &mut self.partitions[partition(*symbol, string)].buffer;
            let before = buffer.len();
            encode_varint(symbol.0.into(), buffer);
            encode_varint(string.len() as u64, buffer);
            string.iter().for_each(|token| encode_varint(token.0.into(), buffer));
            buffer.put_f64_le(*expected);
            self.buffered += buffer.len() - before;
        }
        if self.buffered > self.budget {
            let folder = &self.folder;
            let refused = || {
                format!("{}: cannot keep candidate strings; make room, or choose --out DIR", folder.display())
            };
            self.partitions
                .iter_mut()
                .try_for_each(|partition| partition.spill(folder))
                .with_context(refused)?;
            self.buffered = 0;
        }
        Ok(())
    }

    /// The best strings of all: one partition after the other is summed, on all cores, and put into rankings like `empty`.
    pub fn rank(self, empty: impl Fn() -> Ranking + Sync) -> Result<Ranking> {
        let merge = |mut one: Ranking, other| {
            one.merge(other);
            Ok(one)
        };
        let part = self.part;
        let rank = |mut ranking: Ranking, partition: Partition| -> Result<Ranking> {
            let summed = partition.sum(part, |symbol, string, sum| ranking.add(symbol, string, sum));
            summed.context("candidate strings cannot be read again")?;
            Ok(ranking)
        };
        self.partitions.into_par_iter().try_fold(&empty, rank).try_reduce(&empty, merge)
    }
}

/// Says where a string belongs.
fn hash(symbol: SymbolId, string: &[SymbolId]) -> u64 {
    let mut hasher = FxHasher::default();
    (symbol, string).hash(&mut hasher);
    hasher.finish()
}

fn partition(symbol: SymbolId, string: &[SymbolId]) -> usize {
    hash(symbol, string) as usize % PARTITIONS
}

impl Partition {
    fn spill(&mut self, folder: &Path) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                std::fs::create_dir_all(folder)?;
                self.file.insert(tempfile::tempfile_in(folder)?)
            }
        };
        file.write_all(&self.buffer)?;
        self.buffer = Vec::new();
        Ok(())
    }

    /// Hands over the sum of every string, of about `part` bytes of records at a time.
    fn sum(self, part: usize, mut each: impl FnMut(SymbolId, &[SymbolId], f64)) -> Result<()> {
        let mut records = Vec::new();
        if let Some(mut file) = self.file {
            records.reserve_exact(file.metadata()?.len() as usize + self.buffer.len());
            file.rewind()?;
            file.read_to_end(&mut records)?;
        }
        records.extend(self.buffer);
        // Tables that fit into a cache, one after the other, are filled faster than a large one.
        let mut parts: Vec<Vec<u32>> = vec![Vec::new(); records.len() / part + 1];
        let (mut rest, mut string) = (&records[..], Vec::new());
        while rest.has_remaining() {
            let at = records.len() - rest.len();
            let (symbol, _) = record(&mut rest, &mut string)?;
            let part = hash(symbol, &string) as usize / PARTITIONS % parts.len();
            parts[part].push(u32::try_from(at).context("more than 4 GiB of them")?);
        }
        for part in parts {
            let mut tally = Tally::default();
            for at in part {
                let (symbol, expected) = record(&mut &records[at as usize..], &mut string)?;
                tally.add(symbol, &string, expected);
            }
            tally.sums().for_each(|(symbol, string, sum)| each(symbol, string, sum));
        }
        Ok(())
    }
}

/// Reads a record: nonterminal, string, and what was counted.
fn record(records: &mut &[u8], string: &mut Vec<SymbolId>) -> Result<(SymbolId, f64)> {
    let symbol = SymbolId(decode_varint(records)? as u32);
    string.clear();
    for _ in 0..decode_varint(records)? {
        string.push(SymbolId(decode_varint(records)? as u32));
    }
    Ok((symbol, records.try_get_f64_le()?))
}

#[cfg(test)]
mod tests {
    use shared::num::Noise;

    use super::*;

    #[test]
    fn no_partition_is_much_larger_than_the_others() {
        let mut sizes = [0; PARTITIONS];
        // Short strings of few symbols, all of them.
        for number in 0..200_000u32 {
            let string: Vec<SymbolId> =
                number.to_string().bytes().map(|b| SymbolId(10 + u32::from(b))).collect();
            sizes[partition(SymbolId(3), &string)] += 1;
        }
        let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        assert!(*least > 500 && *most < 1100, "{least} to {most}, 781 on average");
    }

    #[test]
    fn neither_budget_nor_threads_change_a_bit() {
        // Sums of many terms, so that another order gives other bits, and other strings.
        let noise = Noise::new(7, 0);
        let shard = |at: usize| -> Vec<Candidate> {
            let one = |within: usize| {
                let number = (at * 131 + within * 17) % 700;
                Candidate {
                    symbol: SymbolId(1 + (number % 2) as u32),
                    string: format!("{number}").bytes().map(|byte| SymbolId(u32::from(byte) + 200)).collect(),
                    expected: 1.0 + noise.symmetric((at * 1000 + within) as u64),
                }
            };
            (0..90).map(one).collect()
        };
        let adapted = [SymbolId(1), SymbolId(2)];
        let dir = tempfile::tempdir().unwrap();
        let top = |budget: usize, part: usize| {
            let mut shuffle = Shuffle::new_in(dir.path(), budget);
            shuffle.part = part;
            (0..200).for_each(|at| shuffle.add(&shard(at)).unwrap());
            let spilled = shuffle.partitions.iter().filter(|partition| partition.file.is_some()).count();
            (shuffle.rank(|| Ranking::new(&adapted, 100, -0.2)).unwrap().top(), spilled)
        };
        let mut tally = Tally::default();
        for Candidate { symbol, string, expected } in (0..200).flat_map(shard) {
            tally.add(symbol, &string, expected);
        }
        let mut ranking = Ranking::new(&adapted, 100, -0.2);
        tally.sums().for_each(|(symbol, string, sum)| ranking.add(symbol, string, sum));
        let expected = ranking.top();
        let ((in_memory, none), (in_files, many)) = (top(usize::MAX, PART), top(1000, 50));
        assert_eq!((&in_memory, &in_files), (&expected, &expected));
        assert!(none == 0 && many > 100, "{none} and {many} spilled");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "files have no names");
    }
}
