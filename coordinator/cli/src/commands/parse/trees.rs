//! Parsing with a model with latent annotations: sentences in, trees out.

use anyhow::{Result, bail, ensure};
use basics::streams;
use grammaton::data::corpus::{self, Corpus, Options, Unit};
use grammaton::data::treebank::brackets;
use grammaton::models::latent::parse::{Decoder, Model, Parse, Parser, THRESHOLD};
use rayon::prelude::*;
use training::export::{Alternative, Format, Line};
use training::input;
use training::row::Status;

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
    ensure!(
        args.n_best.is_none() || decoder == Decoder::Viterbi,
        "decoder max-rule has no n best; use --decoder viterbi, or leave out --n-best"
    );
    let max_symbols = args.max_symbols.unwrap_or(LONGEST);
    let options =
        Options { format: corpus::Format::Tokens, unit: Unit::Token, max_symbols, ..Options::default() };
    let parts = input::text_to_parse(&args.corpus, &options)?;
    let mut out = Printer::new(
        args,
        if args.format == Format::Json { Format::Json } else { Format::Brackets },
        Vec::new(),
    );
    let threads = args.threads.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let parser = Parser::new(model, THRESHOLD);
    let mut flat: Vec<u32> = Vec::new();
    let (mut n_sentences, mut n_lines) = (0, 0);
    for part in parts {
        let part = part?;
        n_lines = part.n_lines;
        let Some(corpus) = part.corpus else { continue };
        let parse = |at: usize| read(&parser, &words(&corpus, at), decoder, args.n_best);
        let n = corpus.sentences.len();
        n_sentences += n;
        for first in (0..n).step_by(BATCH) {
            let batch = first..n.min(first + BATCH);
            let lines: Vec<Line> = pool.install(|| batch.clone().into_par_iter().map(parse).collect());
            for (line, at) in lines.into_iter().zip(batch) {
                let number = corpus.lines[at];
                flat.extend((line.status != Status::Ok).then_some(number));
                out.line(Line { number, ..line })?;
            }
        }
        out.flush()?;
    }
    out.finish(n_lines)?;
    let Some(first) = flat.first() else { return Ok(Answer::Yes) };
    let printed = if args.n_best.is_some() { "without analyses" } else { "flat" };
    streams::tell(&format!(
        "notice: without a tree and printed {printed}: {} of {n_sentences} sentences, the first one in line {first}",
        flat.len(),
    ));
    Ok(args.partly())
}

/// The best tree of a sentence, or its best ones. Without an analysis the tree is flat.
fn read(parser: &Parser<'_>, words: &[&str], decoder: Decoder, n_best: Option<u16>) -> Line {
    let Some(n) = n_best else {
        let Parse { tree, flat } = parser.parse(words, decoder);
        let status = if flat { Status::NoAnalysis } else { Status::Ok };
        return Line { tree: Some(brackets::line(&tree)), ..Line::empty(0, status) };
    };
    let trees = parser.n_best(words, usize::from(n)).into_iter();
    let n_best: Vec<Alternative> =
        trees.map(|(probability, tree)| Alternative::tree(probability, brackets::line(&tree))).collect();
    let status = if n_best.is_empty() { Status::NoAnalysis } else { Status::Ok };
    Line { n_best, ..Line::empty(0, status) }
}

fn words(corpus: &Corpus, at: usize) -> Vec<&str> {
    corpus.sentences[at].iter().map(|&word| corpus.symbols[word as usize].as_str()).collect()
}
