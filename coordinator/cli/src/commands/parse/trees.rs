//! Parsing with a model with latent annotations: sentences in, trees out.

use anyhow::{Result, bail};
use basics::streams;
use grammaton::data::corpus::{Corpus, Format, Options, Unit};
use grammaton::data::treebank::brackets;
use grammaton::models::latent::parse::{Decoder, Model, Parse, Parser, THRESHOLD};
use rayon::prelude::*;
use training::input;

use super::{Args, BATCH, DecoderName, Printer};
use crate::commands::Answer;

/// Default maximum length of a sentence in words; time grows with its cube.
const LONGEST: u32 = 200;

/// Runs the command. The answer is negative if a sentence has only a flat tree.
pub fn run(args: &Args, model: &Model) -> Result<Answer> {
    let decoder = match args.decoder.unwrap_or(DecoderName::Viterbi) {
        DecoderName::Viterbi => Decoder::Viterbi,
        DecoderName::MaxRule => Decoder::MaxRule,
        _ => {
            bail!("a model of trees needs --decoder viterbi or --decoder max-rule")
        }
    };
    let max_symbols = args.max_symbols.unwrap_or(LONGEST);
    let options = Options { format: Format::Tokens, unit: Unit::Token, max_symbols, ..Options::default() };
    let parts = input::text_to_parse(&args.corpus, &options)?;
    let mut out = Printer::new(super::Format::Brackets, &args.writing, Vec::new())?;
    let threads = args.threads.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let parser = Parser::new(model, THRESHOLD);
    let mut flat: Vec<u32> = Vec::new();
    let (mut n_sentences, mut n_lines) = (0, 0);
    for part in parts {
        let part = part?;
        n_lines = part.n_lines;
        let Some(corpus) = part.corpus else { continue };
        let parse = |at: usize| parser.parse(&words(&corpus, at), decoder);
        let n = corpus.sentences.len();
        n_sentences += n;
        for first in (0..n).step_by(BATCH) {
            let batch = first..n.min(first + BATCH);
            let parses: Vec<Parse> = pool.install(|| batch.clone().into_par_iter().map(parse).collect());
            for (parse, at) in parses.iter().zip(batch) {
                if parse.flat {
                    flat.push(corpus.lines[at]);
                }
                out.line(corpus.lines[at], &brackets::line(&parse.tree))?;
            }
        }
        out.flush()?;
    }
    out.finish(n_lines)?;
    let Some(first) = flat.first() else { return Ok(Answer::Yes) };
    streams::tell(&format!(
        "notice: without a tree and printed flat: {} of {n_sentences} sentences, the first one in line {first}",
        flat.len(),
    ));
    Ok(args.partly())
}

fn words(corpus: &Corpus, at: usize) -> Vec<&str> {
    corpus.sentences[at].iter().map(|&word| corpus.symbols[word as usize].as_str()).collect()
}
