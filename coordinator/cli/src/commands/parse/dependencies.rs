//! Parsing with a dependency model: tagged sentences in, heads out.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use basics::streams;
use grammaton::data;
use grammaton::data::dependency::{Punctuation, Tags, select};
use grammaton::decoding::Decoding;
use grammaton::grammar::tree::Tree;
use grammaton::models::Model;
use grammaton::models::decode::Decoder;
use grammaton::models::dmv::{self, nouns};
use training::input;

use super::{Args, BATCH, DecoderName, TagColumn};
use crate::commands::Answer;

/// Default maximum length of a sentence in words; time grows with its cube.
const LONGEST: u32 = 200;

/// Runs the command. The answer is negative if a sentence has no tree, or is too long.
pub fn run(args: &Args, model: Model, names: &[String]) -> Result<Answer> {
    let decoder = match args.decoder.unwrap_or(DecoderName::MbrArcs) {
        DecoderName::Viterbi => Decoder::Viterbi,
        DecoderName::MbrArcs => Decoder::MbrArcs,
        _ => bail!("a dependency model needs --decoder viterbi or --decoder mbr-arcs"),
    };
    let tags = match args.tags {
        TagColumn::Upos => Tags::Upos,
        TagColumn::Xpos => Tags::Xpos,
    };
    let punctuation = if args.keep_punctuation { Punctuation::Kept } else { Punctuation::Removed };
    let (_, document) = input::dependencies(&args.corpus, tags)?;
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
    for (sentences, items) in sentences.chunks_mut(BATCH).zip(items.chunks(BATCH)) {
        for (sentence, decoded) in sentences.iter_mut().zip(pool.install(|| decoding.all_marked(items))?) {
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
    let Some(first) = flat.first() else { return Ok(Answer::Yes) };
    let why = match unknown.iter().next() {
        Some((tag, _)) => {
            format!("; the model does not know {} tags, `{tag}` for one: see --tags", unknown.len())
        }
        None => String::new(),
    };
    streams::tell(&format!(
        "notice: without a tree, or of more than {longest} words (--max-symbols), and printed with each word hung on the next: \
         {} of {} sentences, the first one in line {first}{why}",
        flat.len(),
        sentences.len(),
    ));
    Ok(args.partly())
}
