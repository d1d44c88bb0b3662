//! The sentences that a job trains on: in blocks of neighbours, each cut into shards by itself, and on a spill.
//!
//! In: a corpus file of any size. Out: its totals, and its blocks. What is in memory at a time is one block.
//! The cut depends on the sentences, [`BLOCK_SYMBOLS`] and `corpus.shard_symbols` alone.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use grammaton::data::corpus::read::End;
use grammaton::data::corpus::{Analyses, Corpus, Format, Notice, Options, Unit};
use grammaton::work::shard::Shard;
use grammaton::work::shard::{BLOCK_SYMBOLS, SentenceShard};
use grammaton::work::task::{ContentHash, Named};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::spill::{SpillStore, Stored};
use crate::input;

/// The gold analyses of sentences, which are named by their symbols.
pub type Gold = FxHashMap<Vec<u32>, Analyses>;

/// A corpus, in a file or an object store, that was read to its end, to be read again block by block.
pub struct Source {
    path: PathBuf,
    options: Options,
    block_symbols: usize,
    /// Properties of the whole file.
    pub end: End,
    /// All of it, if it is one block.
    whole: Option<Corpus>,
    /// Gold from another file.
    gold: Option<Gold>,
}

impl Source {
    /// Reads the corpus at `path` once. A block has room for a shard of `shard_symbols` symbols.
    pub fn open(path: &Path, options: Options, shard_symbols: u32) -> Result<Source> {
        let block_symbols = BLOCK_SYMBOLS.max(shard_symbols as usize);
        let mut reader = input::reader(path, &options)?;
        let mut whole = reader.block(block_symbols)?;
        while reader.block(BLOCK_SYMBOLS)?.is_some() {
            whole = None;
        }
        Ok(Source { path: path.to_owned(), options, block_symbols, end: reader.finish()?, whole, gold: None })
    }

    /// Has this gold, and not that of the corpus.
    pub fn set_gold(&mut self, gold: Gold) {
        self.gold = Some(gold);
    }

    /// Whether some sentences have a gold segmentation.
    pub fn has_gold(&self) -> bool {
        self.gold.is_some() || self.end.marks_words
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// How it is read.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Notices for the user about a file with or without a gold segmentation to score against.
    pub fn notices(&self, wants_gold: bool) -> Vec<String> {
        let wants_gold = wants_gold && self.gold.is_none();
        let is_wanted = |notice: &&Notice| wants_gold || !matches!(notice, Notice::NoGold { .. });
        self.end.notices.iter().filter(is_wanted).map(ToString::to_string).collect()
    }

    /// Hands every block to `each`, in order; none has gold unless the file as a whole has, or another one.
    pub fn blocks(&self, mut each: impl FnMut(Corpus) -> Result<()>) -> Result<()> {
        let marked = |corpus: Corpus| Corpus {
            symbols: self.end.symbols.clone(),
            gold: match &self.gold {
                Some(gold) => {
                    let of_sentence = |sentence| gold.get(sentence).cloned().unwrap_or_default();
                    Some(corpus.sentences.iter().map(of_sentence).collect())
                }
                None => corpus.gold.filter(|_| self.end.marks_words),
            },
            ..corpus
        };
        if let Some(whole) = &self.whole {
            return each(marked(whole.clone()));
        }
        let mut reader = input::reader(&self.path, &self.options)?;
        while let Some(block) = reader.block(self.block_symbols)? {
            each(marked(block))?;
        }
        let name = self.name();
        ensure!(
            reader.finish()? == self.end,
            "{name}: the corpus changed while it was read; start once more"
        );
        Ok(())
    }
}

/// The sentences of a job.
pub struct Text {
    /// Distinct symbols.
    pub symbols: Vec<String>,
    /// Number of sentences.
    pub n_sentences: usize,
    /// Number of symbols in all of them.
    pub n_symbols: usize,
    /// Number of lines of the file, empty ones and held-out sentences included.
    pub n_lines: u32,
    /// Whether there is a gold segmentation.
    pub has_gold: bool,
    /// How the file is written.
    pub format: Format,
    /// Unit of symbols.
    pub unit: Unit,
    /// Distinct sentences of every block, in shards.
    pub shards: Vec<Stored<Shard>>,
    blocks: Vec<BlockPlace>,
}

/// BlockPlace of a block.
struct BlockPlace {
    /// Its sentences among all.
    sentences: Range<usize>,
    /// Its shards among all.
    shards: Range<usize>,
    block: Stored<Block>,
    held_out: Option<HeldOut>,
}

/// Sentences of a block that are not trained on.
pub struct HeldOut {
    /// Shards of the held-out ones.
    pub shards: Vec<Stored<Shard>>,
    /// The sentences, with the positions of those in shards. The others are skipped, as the grammar cannot derive them.
    pub block: Stored<Block>,
}

/// Neighbouring sentences, and the sources of the sentences of shards.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Block {
    /// The sentences.
    pub corpus: Corpus,
    /// Positions of the sentences of its shards.
    pub positions: Positions,
}

/// Positions in a block by shard and sentence, ascending.
pub type Positions = Vec<Vec<Vec<u32>>>;

impl Text {
    /// A text without sentences yet, of this source.
    pub fn new(source: &Source) -> Text {
        let Options { format, unit, .. } = source.options;
        Text {
            symbols: source.end.symbols.clone(),
            n_sentences: 0,
            n_symbols: 0,
            n_lines: source.end.n_lines,
            has_gold: source.has_gold(),
            format,
            unit,
            shards: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// A text of a corpus in memory.
    pub fn in_memory(corpus: Corpus, shards: Vec<SentenceShard>) -> Text {
        let (n, n_symbols) = (corpus.sentences.len(), corpus.n_symbols());
        let (shards, positions): (Vec<Shard>, _) =
            shards.into_iter().map(|shard| (shard.shard, shard.positions)).unzip();
        let mut text = Text {
            symbols: corpus.symbols.clone(),
            n_sentences: 0,
            n_symbols: 0,
            n_lines: corpus.lines.last().copied().unwrap_or_default(),
            has_gold: corpus.gold.is_some(),
            format: corpus.format,
            unit: corpus.unit,
            shards: Vec::new(),
            blocks: Vec::new(),
        };
        let shards = shards.into_iter().map(|shard| Stored::in_memory(Named::new(shard))).collect();
        text.add(n, n_symbols, shards, Stored::in_memory(Named::new(Block { corpus, positions })), None);
        text
    }

    /// Adds a block that was cut into shards, puts it on the spill, and has the sentences of the same lines that are `held_out`.
    pub fn push(
        &mut self,
        spill: &SpillStore,
        corpus: Corpus,
        cut: Vec<SentenceShard>,
        held_out: Option<HeldOut>,
    ) -> Result<()> {
        let (n, n_symbols) = (corpus.sentences.len(), corpus.n_symbols());
        let (shards, positions) = on_shelf(spill, cut)?;
        self.add(n, n_symbols, shards, spill.keep(Block { corpus, positions })?, held_out);
        Ok(())
    }

    fn add(
        &mut self,
        n: usize,
        n_symbols: usize,
        shards: Vec<Stored<Shard>>,
        block: Stored<Block>,
        held_out: Option<HeldOut>,
    ) {
        let at = self.shards.len();
        let sentences = self.n_sentences..self.n_sentences + n;
        self.blocks.push(BlockPlace { sentences, shards: at..at + shards.len(), block, held_out });
        self.n_sentences += n;
        self.n_symbols += n_symbols;
        self.shards.extend(shards);
    }

    /// Hands every block to `each`, in order, with its sentences and shards among all.
    pub fn blocks(
        &self,
        mut each: impl FnMut(Range<usize>, Range<usize>, &Block) -> Result<()>,
    ) -> Result<()> {
        self.blocks_with_held_out(|sentences, shards, block, _| each(sentences, shards, &block))
    }

    /// Passes all blocks with the held-out sentences of the same lines, if there are any.
    pub fn blocks_with_held_out(
        &self,
        mut each: impl FnMut(Range<usize>, Range<usize>, Arc<Block>, Option<&HeldOut>) -> Result<()>,
    ) -> Result<()> {
        self.blocks.iter().try_for_each(|at| {
            each(at.sentences.clone(), at.shards.clone(), at.block.value()?, at.held_out.as_ref())
        })
    }

    /// The lines of all occurrences of a sentence in its block, by shard and position in it.
    pub fn lines(&self, shard: usize, item: u32) -> Result<Vec<u32>> {
        let BlockPlace { shards, block, .. } =
            &self.blocks[self.blocks.partition_point(|place| place.shards.end <= shard)];
        let Block { corpus, positions } = &*block.value()?;
        let positions = &positions[shard - shards.start][item as usize];
        Ok(positions.iter().map(|&position| corpus.lines[position as usize]).collect())
    }

    /// File, line and text of a sentence, by shard and position in it, for messages.
    pub fn describe(&self, shard: usize, item: u32) -> Result<String> {
        let place = self.blocks.partition_point(|place| place.shards.end <= shard);
        let BlockPlace { shards, block, .. } = &self.blocks[place];
        let Block { corpus, positions } = &*block.value()?;
        Ok(described(corpus, positions[shard - shards.start][item as usize][0] as usize))
    }

    /// Symbols, file, line and text of the longest sentence of the shards with these hashes; `None` if there is none.
    pub fn describe_longest(&self, hashes: &[ContentHash]) -> Result<Option<String>> {
        let mut longest: Option<(usize, usize, usize)> = None;
        for (at, shard) in self.shards.iter().enumerate().filter(|(_, shard)| hashes.contains(&shard.hash)) {
            let Shard::Sentences(sentences) = &*shard.value()? else { continue };
            for (item, sentence) in sentences.iter().enumerate() {
                let n_symbols = sentence.tokens.len();
                if longest.is_none_or(|(most, ..)| most < n_symbols) {
                    longest = Some((n_symbols, at, item));
                }
            }
        }
        let Some((n_symbols, at, item)) = longest else { return Ok(None) };
        Ok(Some(format!("{n_symbols} symbols: {}", self.describe(at, item as u32)?)))
    }
}

/// File, line and text of a sentence of a corpus, for messages.
pub fn described(corpus: &Corpus, position: usize) -> String {
    let whole = [corpus.sentences[position].len() as u32];
    let mut text: String = corpus.line(position, &whole);
    if let Some((end, _)) = text.char_indices().nth(60) {
        text.truncate(end);
        text.push('…');
    }
    format!("{}:{}: {text}", corpus.source_name, corpus.lines[position])
}

/// Puts shards on the spill, and gives them with their [`Block::positions`].
pub fn on_shelf(spill: &SpillStore, cut: Vec<SentenceShard>) -> Result<(Vec<Stored<Shard>>, Positions)> {
    let mut shards = Vec::with_capacity(cut.len());
    let mut positions = Vec::with_capacity(cut.len());
    for shard in cut {
        shards.push(spill.keep(shard.shard)?);
        positions.push(shard.positions);
    }
    Ok((shards, positions))
}

impl Block {
    /// Results for distinct sentences by shard → one for each sentence of the block, in its order.
    pub fn by_sentence<'a, T>(&self, found: &'a [Vec<T>]) -> Result<Vec<&'a T>> {
        let by_sentence: Option<Vec<&T>> = self.by_sentence_in_shards(found).into_iter().collect();
        by_sentence
            .context("a worker left out sentences of its shard: it computes wrongly; connect another worker")
    }

    /// The results of [`Block::by_sentence`] for a block whose shards may lack sentences; `None` for these.
    pub fn by_sentence_in_shards<'a, T>(&self, found: &'a [Vec<T>]) -> Vec<Option<&'a T>> {
        let mut by_sentence: Vec<Option<&T>> = vec![None; self.corpus.sentences.len()];
        for (positions, found) in self.positions.iter().zip(found) {
            for (positions, found) in positions.iter().zip(found) {
                positions.iter().for_each(|&position| by_sentence[position as usize] = Some(found));
            }
        }
        by_sentence
    }

    /// Results for every occurrence, by shard → one for each sentence of the block, in its order; `None` without results.
    pub fn by_occurrence<'a, T>(&self, found: &'a [Vec<T>]) -> Option<Vec<&'a T>> {
        let mut by_sentence: Vec<Option<&T>> = vec![None; self.corpus.sentences.len()];
        for (positions, found) in self.positions.iter().zip(found) {
            if positions.iter().map(Vec::len).sum::<usize>() != found.len() {
                return None; // a sentence without a result would get that of another one
            }
            for (&position, found) in positions.iter().flatten().zip(found) {
                by_sentence[position as usize] = Some(found);
            }
        }
        by_sentence.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use grammaton::grammar::SymbolId;
    use grammaton::work::shard;

    use super::*;

    const LINES: [&str; 7] = ["a b", "", "ab a", "a b", "cd", "ab a", "a b"];

    #[test]
    fn blocks_together_are_the_corpus() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("corpus.txt");
        fs::write(&path, LINES.join("\n")).unwrap();
        let options = Options::default();
        let mut source = Source::open(&path, options.clone(), 8).unwrap();
        let (corpus, _) = Corpus::open_with(&path, &options).unwrap();
        assert_eq!((source.end.n_sentences, source.end.n_symbols), (6, 14));
        assert_eq!(source.whole.as_ref(), Some(&corpus));
        source.block_symbols = 4;
        source.whole = None;
        let spill = SpillStore::new_in(dir.path());
        let mut text = Text::new(&source);
        let mut sizes = Vec::new();
        let cut = |block: Corpus| {
            sizes.push(block.sentences.len());
            let tokens = |sentence: &Vec<u32>| sentence.iter().map(|&symbol| SymbolId(symbol)).collect();
            let sentences: Vec<Vec<SymbolId>> = block.sentences.iter().map(tokens).collect();
            text.push(&spill, block, shard::cut(&sentences, 2), None)
        };
        source.blocks(cut).unwrap();
        assert_eq!(sizes, [2, 2, 2]);
        assert_eq!(text.shards.len(), 6);
        assert_eq!(text.describe(5, 0).unwrap(), format!("{}:7: ab", path.display()));
        let hashes: Vec<_> = text.shards[..2].iter().map(|shard| shard.hash).collect();
        let longest = |hashes| text.describe_longest(hashes).unwrap();
        assert_eq!(longest(&hashes), Some(format!("3 symbols: {}:3: aba", path.display())));
        assert_eq!(longest(&hashes[..1]), Some(format!("2 symbols: {}:1: ab", path.display())));
        assert_eq!(longest(&[]), None);
        let mut lines = Vec::new();
        let blocks = text.blocks(|sentences, shards, block| {
            assert_eq!((sentences.start, shards.start), (lines.len(), lines.len()));
            let found: Vec<Vec<usize>> = shards.map(|shard| vec![shard]).collect();
            for (at, &shard) in block.by_sentence(&found).unwrap().into_iter().enumerate() {
                assert_eq!(shard, lines.len());
                lines.push(block.corpus.gold_line(at).unwrap());
            }
            Ok(())
        });
        blocks.unwrap();
        assert_eq!(lines, LINES.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>());
    }

    #[test]
    fn a_corpus_that_changes_while_it_is_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("corpus.txt");
        fs::write(&path, LINES.join("\n")).unwrap();
        let mut source = Source::open(&path, Options::default(), 8).unwrap();
        source.whole = None;
        fs::write(&path, "a b").unwrap();
        let refused = source.blocks(|_| Ok(())).unwrap_err().to_string();
        assert!(refused.contains("changed while it was read"), "{refused}");
    }
}
