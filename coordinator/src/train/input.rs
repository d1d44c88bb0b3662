//! What a run trains on: corpus, grammar, and the sentences as shards.

use anyhow::{Context, Result, bail};
use shared::corpus::shards::{self, DEFAULT_SHARD_SYMBOLS, SentenceShard};
use shared::corpus::{Corpus, Options};
use shared::grammar::{Grammar, SymbolId, auto};
use shared::task::Decoded;

use crate::input;
use crate::job::{GrammarSource, Job};
use crate::nearest::nearest;

/// Everything read and checked.
pub struct Input {
    /// The corpus.
    pub corpus: Corpus,
    /// The grammar.
    pub grammar: Grammar,
    /// The nonterminals whose constituents are the segments.
    pub segments: Vec<SymbolId>,
    /// Distinct sentences, in shards.
    pub shards: Vec<SentenceShard>,
    /// What the user should know about the files.
    pub notices: Vec<String>,
}

/// The segments of a grammar whose job names none.
const DEFAULT_SEGMENT: &str = "Word";

impl Input {
    /// Reads the files of `job`.
    pub fn load(job: &Job) -> Result<Input> {
        let corpus = &job.corpus;
        let options = Options { format: corpus.format, unit: corpus.unit, max_symbols: corpus.max_symbols };
        let (corpus, notices) = Corpus::open(&corpus.path, &options)?;
        let mut notices: Vec<String> = notices.iter().map(ToString::to_string).collect();
        let (grammar, word) = match &job.model.grammar {
            GrammarSource::Auto(kind) => {
                let made =
                    auto::auto(*kind, &corpus.symbols).context("cannot make a grammar for the corpus")?;
                (made.grammar, Some(made.word))
            }
            GrammarSource::File(path) => {
                let (grammar, more) = input::grammar(path)?;
                notices.extend(more);
                let word = grammar.symbol(DEFAULT_SEGMENT).filter(|&word| grammar.is_nonterminal(word));
                (grammar, word)
            }
        };
        let segments = segments(&job.output.segments, &grammar, word)?;
        if grammar.adapted().next().is_none() {
            bail!(
                "{}: no nonterminal is adapted, so there is nothing to train; leave the numbers before its rules away, \
                 as in `Word --> Chars`, to adapt one",
                job.model.grammar
            );
        }
        let shards = shards::cut(&corpus.tokens_for(&grammar)?, DEFAULT_SHARD_SYMBOLS);
        Ok(Input { corpus, grammar, segments, shards, notices })
    }

    /// Answers for distinct sentences by shard → one for each sentence of the corpus, in its order.
    pub fn by_sentence<'a>(&self, decoded: &'a [Vec<Decoded>]) -> Vec<&'a Decoded> {
        let mut by_sentence: Vec<Option<&Decoded>> = vec![None; self.corpus.sentences.len()];
        for (shard, decoded) in self.shards.iter().zip(decoded) {
            for (positions, decoded) in shard.positions.iter().zip(decoded) {
                positions.iter().for_each(|&position| by_sentence[position as usize] = Some(decoded));
            }
        }
        by_sentence.into_iter().map(|decoded| decoded.expect("shards hold every sentence")).collect()
    }

    /// Line and text of a sentence, by shard and position in it, for messages.
    pub fn describe(&self, shard: usize, item: u32) -> String {
        let position = self.shards[shard].positions[item as usize][0] as usize;
        let corpus = &self.corpus;
        let whole = [corpus.sentences[position].len() as u32];
        let mut text: String = corpus.line(position, &whole);
        if let Some((end, _)) = text.char_indices().nth(60) {
            text.truncate(end);
            text.push('…');
        }
        format!("{}:{}: {text}", corpus.source_name, corpus.lines[position])
    }
}

fn segments(names: &[String], grammar: &Grammar, word: Option<SymbolId>) -> Result<Vec<SymbolId>> {
    if names.is_empty() {
        let Some(word) = word else {
            let known: Vec<&str> = grammar.adapted().map(|symbol| grammar.name(symbol)).collect();
            bail!(
                "the grammar has no nonterminal {DEFAULT_SEGMENT}; name the segments with output.segments, as in \
                 --set 'output.segments=[\"{}\"]'",
                known.first().unwrap_or(&"X")
            );
        };
        return Ok(vec![word]);
    }
    let find = |name: &String| {
        let symbol = grammar.symbol(name).filter(|&symbol| grammar.is_nonterminal(symbol));
        symbol.with_context(|| {
            let known = &grammar.symbols[..grammar.n_nonterminals as usize];
            let way_out = match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("choose from: {}", known.join(", ")),
            };
            format!("output.segments: the grammar has no nonterminal \"{name}\"; {way_out}")
        })
    };
    names.iter().map(find).collect()
}
