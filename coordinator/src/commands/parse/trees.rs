//! Sentences in, trees out, by a model with latent annotations.

use anyhow::{Result, bail};
use rayon::prelude::*;
use shared::corpus::{Corpus, Format, Options, Unit};
use shared::latent::parse::{Decoder, Model, Parse, Parser, THRESHOLD};
use shared::treebank::brackets;

use super::{Args, BATCH, DecoderName};
use crate::commands::Answer;
use crate::input;
use crate::streams::{self, Stdout};

/// The longest sentence that is parsed unless more is asked for, in words: time grows with the cube.
const LONGEST: u32 = 200;

/// Parses. The answer is negative if a sentence has no tree but a flat one.
pub fn run(args: &Args, model: &Model) -> Result<Answer> {
    let decoder = match args.decoder {
        DecoderName::Viterbi => Decoder::Viterbi,
        DecoderName::MaxRule => Decoder::MaxRule,
        DecoderName::Mbr | DecoderName::MbrTree | DecoderName::MbrArcs => {
            bail!("a model of trees is read with --decoder viterbi or --decoder max-rule")
        }
    };
    let max_symbols = args.max_symbols.unwrap_or(LONGEST);
    let options = Options { format: Format::Tokens, unit: Unit::Token, max_symbols };
    let (corpus, notices) = input::corpus(&args.corpus, &options)?;
    notices.iter().for_each(|notice| streams::tell(&format!("notice: {notice}")));
    let threads = args.threads.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let parser = Parser::new(model, THRESHOLD);
    let parse = |at: usize| parser.parse(&words(&corpus, at), decoder);
    let mut out = Stdout::lock();
    let mut flat: Vec<u32> = Vec::new();
    let n = corpus.sentences.len();
    for first in (0..n).step_by(BATCH) {
        let batch = first..n.min(first + BATCH);
        let parses: Vec<Parse> = pool.install(|| batch.clone().into_par_iter().map(parse).collect());
        for (parse, at) in parses.iter().zip(batch) {
            if parse.flat {
                flat.push(corpus.lines[at]);
            }
            out.line(&brackets::line(&parse.tree))?;
        }
    }
    out.flush()?;
    let Some(first) = flat.first() else { return Ok(Answer::Yes) };
    streams::tell(&format!(
        "notice: without a tree and printed flat: {} of {n} sentences, the first one in line {first}",
        flat.len(),
    ));
    Ok(Answer::No)
}

fn words(corpus: &Corpus, at: usize) -> Vec<&str> {
    corpus.sentences[at].iter().map(|&word| corpus.symbols[word as usize].as_str()).collect()
}
