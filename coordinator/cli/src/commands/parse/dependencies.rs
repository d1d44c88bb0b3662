//! Parsing with a dependency model: tagged sentences in, heads out.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use basics::streams;
use grammaton::data;
use grammaton::data::dependency::{Document, Punctuation, Sentence, Tags, select};
use grammaton::decoding::{CHUNK, Decoding};
use grammaton::grammar::tree::Tree;
use grammaton::models::Model;
use grammaton::models::decode::Decoder;
use grammaton::models::decode::n_best::{Distinct, Ranked};
use grammaton::models::dmv::{self, nouns};
use grammaton::models::word_classes::are_classes;
use rayon::prelude::*;
use training::export::{Alternative, Line};
use training::input;
use training::row::Status;
use training::word_classes;

use super::{Args, BATCH, DecoderName, Printer, TagColumn};
use crate::commands::Answer;

/// Default maximum length of a sentence in words; time grows with its cube.
const LONGEST: u32 = 200;

/// Reads sentences whose words have the classes of the model for tags.
fn with_classes(args: &Args) -> Result<Document> {
    let classes = word_classes::beside(&args.model)?;
    let (name, bytes) = input::named_bytes(&args.corpus, "sentences")?;
    Ok(word_classes::tagged(&input::untagged(&bytes, &name)?.complete()?, &classes, &name)?.0)
}

/// Runs the command. The answer is negative if a sentence has no tree, or is too long.
pub fn run(args: &Args, model: Model, names: &[String]) -> Result<Answer> {
    let decoder = match args.decoder.unwrap_or(DecoderName::MbrArcs) {
        DecoderName::Viterbi => Decoder::Viterbi,
        DecoderName::MbrArcs => Decoder::MbrArcs,
        _ => bail!("a dependency model needs --decoder viterbi or --decoder mbr-arcs"),
    };
    ensure!(
        args.n_best.is_none() || decoder == Decoder::Viterbi,
        "decoder mbr-arcs has no n best; use --decoder viterbi, or leave out --n-best"
    );
    let punctuation = if args.keep_punctuation { Punctuation::Kept } else { Punctuation::Removed };
    let document = match args.tags {
        None if are_classes(names) => with_classes(args)?,
        None | Some(TagColumn::Upos) => input::dependencies(&args.corpus, Tags::Upos)?.1,
        Some(TagColumn::Xpos) => input::dependencies(&args.corpus, Tags::Xpos)?.1,
    };
    let mut sentences = select(&document.sentences, punctuation, usize::MAX).sentences;
    let longest = args.max_symbols.unwrap_or(LONGEST) as usize;
    let numbers: BTreeMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
    let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
    let mut items: Vec<Option<data::Sentence>> = Vec::new();
    for sentence in &sentences {
        let known: Vec<Option<u32>> =
            sentence.tags.iter().map(|tag| numbers.get(tag.as_str()).copied()).collect();
        for (tag, _) in sentence.tags.iter().zip(&known).filter(|(_, known)| known.is_none()) {
            *unknown.entry(tag.clone()).or_default() += 1;
        }
        let known: Option<Vec<u32>> = known.into_iter().collect();
        let item = |tags: Vec<u32>| {
            let marks = dmv::factors::marks(&model.grammar, sentence, false);
            data::Sentence::new(nouns::tokens(&model.grammar, &tags), 1).with_marks(marks)
        };
        items.push(known.filter(|tags| tags.len() <= longest).map(item));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads.map_or(0, usize::from)).build()?;
    let decoding = Decoding::new(model, decoder, true, args.closed);
    let mut flat: Vec<u32> = Vec::new();
    let printed = match args.n_best {
        Some(n) => {
            let mut out = Printer::new(args, args.format, Vec::new());
            let original: BTreeMap<u32, &Sentence> =
                document.sentences.iter().map(|sentence| (sentence.line, sentence)).collect();
            for (sentences, items) in sentences.chunks(BATCH).zip(items.chunks(BATCH)) {
                let ranked = |items: &[_]| decoding.most_probable(items, usize::from(n), Distinct::Trees);
                let chunks =
                    pool.install(|| items.par_chunks(CHUNK).map(ranked).collect::<Result<Vec<_>, _>>())?;
                for (sentence, ranked) in sentences.iter().zip(chunks.into_iter().flatten()) {
                    flat.extend(ranked.is_empty().then_some(sentence.line));
                    let original = original[&sentence.line];
                    let alternative = |ranked: Ranked| -> Result<Alternative> {
                        let heads = nouns::heads(&Tree::parse(&ranked.tree.unwrap_or_default())?)?.1;
                        let heads = match punctuation {
                            Punctuation::Kept => heads,
                            Punctuation::Removed => original.with_punctuation(&heads),
                        };
                        Ok(Alternative::heads(ranked.probability, heads))
                    };
                    let n_best: Vec<Alternative> =
                        ranked.into_iter().map(alternative).collect::<Result<_>>()?;
                    let status = if n_best.is_empty() { Status::NoAnalysis } else { Status::Ok };
                    out.write(Line { n_best, ..Line::empty(sentence.line, status) })?;
                }
                out.flush()?;
            }
            out.finish(0)?;
            "without analyses"
        }
        None => {
            for (sentences, items) in sentences.chunks_mut(BATCH).zip(items.chunks(BATCH)) {
                let all = pool.install(|| decoding.all_marked(items))?;
                for (sentence, decoded) in sentences.iter_mut().zip(all) {
                    sentence.heads = Some(match decoded {
                        Some(decoded) => nouns::heads(&Tree::parse(&decoded.trees[0])?)?.1,
                        None => {
                            flat.push(sentence.line);
                            dmv::heads::flat(sentence.n_words())
                        }
                    });
                }
            }
            streams::print(&document.with_heads(&sentences, punctuation))?;
            "with each word hung on the next"
        }
    };
    let Some(first) = flat.first() else { return Ok(Answer::Yes) };
    let why = match unknown.iter().next() {
        Some((tag, _)) => {
            format!("; the model does not know {} tags, `{tag}` for one: see --tags", unknown.len())
        }
        None => String::new(),
    };
    streams::tell(&format!(
        "notice: without a tree, or of more than {longest} words (--max-symbols), and printed {printed}: \
         {} of {} sentences, the first one in line {first}{why}",
        flat.len(),
        sentences.len(),
    ));
    Ok(args.partly())
}
