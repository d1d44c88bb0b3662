//! Training data of a dependency model, and scores of its heads.
//!
//! In: sentences with tags, and heads if they are to be scored. Out: a corpus whose symbols are tags, of which every word is two
//! tokens ([`grammaton::models::dmv`]); where training starts; and, with a model, the heads of other sentences or of these.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use fleet::{Map, Stage};
use grammaton::data::TreeMarks;
use grammaton::data::corpus::{Corpus, Format, Unit};
use grammaton::data::dependency::{
    Document, Problem, Punctuation, Selection, Sentence, SentenceError, select,
};
use grammaton::data::eval::Source;
use grammaton::data::eval::dependencies::score;
use grammaton::data::tags::classes;
use grammaton::data::tags::families::Families;
use grammaton::data::tags::{TagSet, Tagged};
use grammaton::grammar::tree::Tree;
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::models::Model;
use grammaton::models::decode::{Decode, Decoder};
use grammaton::models::dmv::rules::RuleSet;
use grammaton::models::dmv::{self, Layout, nouns};
use grammaton::settings::Inference;
use grammaton::settings::method::{Estimator, RULED};
use grammaton::work::shard::{self, DEFAULT_SHARD_SYMBOLS, SentenceShard};
use grammaton::work::task::Named;

use super::held_out::split;
use super::plan::Plan;
use super::spill::Stored;
use crate::input;
use crate::job::{CorpusTable, FamiliesSource, GivenHeads, Job, Point};
use crate::metrics::{AttachmentByDecoder, decoder_name};
use crate::outcome::Heads;

/// Tokens of a word.
pub const TOKENS_PER_WORD: usize = 2;

/// Tokens of a sentence, and what is known of its tree.
type Marked = (Vec<SymbolId>, TreeMarks);

/// Sentences to train on and sentences to find the heads of.
pub struct Dependencies {
    /// Tags of the sentences to train on.
    tagged: Tagged,
    /// By point of the job: the family of each parameter, for those that have one.
    families: Vec<Vec<Option<usize>>>,
    /// Held-out sentences of any length; without these, the sentences trained on.
    to_find: ToFind,
}

/// Sentences to find the heads of.
pub struct ToFind {
    sentences: Vec<Sentence>,
    /// The file that these are of.
    document: Arc<Document>,
    /// Tokens of those whose tags the model has.
    shards: Vec<SentenceShard>,
}

/// Sentences of tags, as read.
pub struct Loaded {
    /// The sentences.
    pub dependencies: Dependencies,
    /// The tags of those to train on.
    pub corpus: Corpus,
    /// The model of these tags.
    pub grammar: Grammar,
    /// Sentences to train on, in shards.
    pub shards: Vec<SentenceShard>,
    /// Held-out sentences up to the length of those trained on, in shards.
    pub held_out: Vec<SentenceShard>,
    /// Sentences of `corpus.test`, if the job has it.
    pub test: Option<LoadedTest>,
    /// Notices for the user.
    pub notices: Vec<String>,
}

/// The sentences of `corpus.test`.
pub struct LoadedTest {
    /// Sentences of any length.
    pub to_find: ToFind,
    /// Sentences up to the length of those trained on, in shards.
    pub predicted: Vec<SentenceShard>,
    /// Number of sentences with tags that the model lacks.
    pub n_unknown: usize,
}

impl Dependencies {
    /// Reads the sentences of `job`.
    pub fn load(job: &Job) -> Result<Loaded> {
        let CorpusTable { path, held_out, held_out_share, test, max_length, .. } = &job.corpus;
        let mut notices = Vec::new();
        let File { name, document, sentences } = File::read(job, path, &mut notices)?;
        let (document, all, mut other) = if !held_out.as_os_str().is_empty() {
            let other = File::read(job, held_out, &mut notices)?;
            (other.document, sentences, other.sentences)
        } else {
            let (all, other) = split(sentences, *held_out_share, job.corpus.held_out_seed, "sentences")?;
            (document, all, other)
        };
        let Selection { sentences: mut trained, n_long, .. } = up_to(&all, *max_length);
        let constrain = constrains(job);
        if constrain {
            trained = with_tree(job, &name, trained, &mut notices)?;
            let held_out = held_out.display().to_string();
            other = with_tree(job, if held_out.is_empty() { &name } else { &held_out }, other, &mut notices)?;
        }
        if let Some(first) = all.iter().find(|sentence| sentence.n_words() > *max_length as usize) {
            notices.push(format!(
                "{name}:{}: {n_long} sentences of more than {max_length} words, this being the first, are not used in training; \
                 corpus.max_length sets the limit",
                first.line
            ));
        }
        if trained.is_empty() {
            bail!("{name}: no sentences are left of {}; raise corpus.max_length", all.len());
        }
        let mut tags = TagSet::default();
        let numbers: Vec<Vec<u32>> = trained.iter().map(|sentence| tags.numbers(sentence)).collect();
        let n_other: Vec<Vec<u32>> = other.iter().map(|sentence| tags.numbers(sentence)).collect();
        let grammar = grammar(job, &name, &tags.names)?;
        let layout = Layout::new(tags.names.len());
        let of_point = |point: &Point| families(layout, &tags.names, &point.inference.families, &mut notices);
        let families = job.points.iter().map(of_point).collect::<Result<_>>()?;
        let Inference { rules, rules_weight, .. } = &job.points[0].inference;
        if !rules.is_empty() && has_factors(job) {
            let how = if *rules == RuleSet::Ud { ", not learned" } else { " before training" };
            notices.push(format!("{rules} of strength {rules_weight} are put in{how} (inference.rules)"));
        }
        for component in job.points.iter().flat_map(|point| &point.inference.components) {
            component.resolve(&tags.names).with_context(|| format!("{name}: inference.components"))?;
        }
        let marked = |tags: &[u32], sentence: &Sentence, constrain| -> Marked {
            (nouns::tokens(&grammar, tags), dmv::factors::marks(&grammar, sentence, constrain))
        };
        let free = |(tags, sentence): (&Vec<u32>, &Sentence)| marked(tags, sentence, false);
        let of_trained: Vec<Marked> =
            numbers.iter().zip(&trained).map(|(tags, sentence)| marked(tags, sentence, constrain)).collect();
        let short = |(numbers, _): &(&Vec<u32>, &Sentence)| numbers.len() <= *max_length as usize;
        // The probability of the corpus itself is what training raises.
        let is_measured = held_out != path;
        let measured = n_other.iter().zip(&other).filter(|_| is_measured).filter(short);
        let measured: Vec<Marked> = measured.map(free).collect();
        let (to_find, of_found) = if other.is_empty() {
            (trained.clone(), of_trained.clone())
        } else {
            let of_other = n_other.iter().zip(&other);
            let of_other = of_other.map(|(tags, sentence)| marked(tags, sentence, constrain)).collect();
            (other, of_other)
        };
        job.corpus.check_shards(numbers.iter().map(Vec::len).sum())?;
        let shard_symbols = job.corpus.symbols_of_shard();
        let test = if test.as_os_str().is_empty() {
            None
        } else {
            let File { document, sentences, .. } = File::read(job, test, &mut notices)?;
            let numbers: Vec<Option<Vec<u32>>> =
                sentences.iter().map(|sentence| tags.known(sentence)).collect();
            let is_short = |sentence: &Sentence| sentence.n_words() <= *max_length as usize;
            let of_short = sentences.iter().zip(&numbers).filter(|(sentence, _)| is_short(sentence));
            let of_short: Vec<(&Sentence, &Option<Vec<u32>>)> = of_short.collect();
            let known =
                |&(sentence, numbers): &(&_, &Option<Vec<u32>>)| Some(free((numbers.as_ref()?, sentence)));
            let short: Vec<Marked> = of_short.iter().filter_map(known).collect();
            let n_unknown = of_short.len() - short.len();
            let marked = sentences.iter().zip(&numbers);
            let marked = marked.map(|(sentence, numbers)| Some(free((numbers.as_ref()?, sentence))));
            let shards = cut_to_find(marked);
            Some(LoadedTest {
                to_find: ToFind { sentences, document: Arc::new(document), shards },
                predicted: shard::cut_marked(&short, &[], DEFAULT_SHARD_SYMBOLS),
                n_unknown,
            })
        };
        Ok(Loaded {
            corpus: Corpus {
                symbols: tags.names.clone(),
                sentences: numbers.clone(),
                gold: None,
                lines: trained.iter().map(|sentence| sentence.line).collect(),
                occurrences: Vec::new(),
                beside: Vec::new(),
                source_name: name,
                format: Format::Tokens,
                unit: Unit::Token,
            },
            shards: shard::cut_marked(&of_trained, &[], shard_symbols),
            held_out: shard::cut_marked(&measured, &[], DEFAULT_SHARD_SYMBOLS),
            dependencies: Dependencies {
                tagged: Tagged { tags, sentences: numbers },
                families,
                to_find: ToFind {
                    sentences: to_find,
                    document: Arc::new(document),
                    shards: cut_to_find(of_found.into_iter().map(Some)),
                },
            },
            grammar,
            test,
            notices,
        })
    }

    /// The family of each parameter, for those that have one, at a point of the job.
    pub fn families(&self, point: usize) -> &[Option<usize>] {
        &self.families[point]
    }

    /// The sentences to train on.
    pub fn tagged(&self) -> &Tagged {
        &self.tagged
    }

    /// The sentences to find the heads of while training and at its end.
    pub fn to_find(&self) -> &ToFind {
        &self.to_find
    }
}

impl ToFind {
    /// The gold heads; none unless every sentence has them.
    pub fn gold(&self) -> Option<&[Sentence]> {
        self.sentences.iter().all(|sentence| sentence.heads.is_some()).then_some(&self.sentences)
    }

    /// Finds heads by every decoder, and scores them if there is gold.
    pub fn find(
        &self,
        fleet: &dyn Map,
        plan: &Plan,
        model: &Model,
        decoders: &[Decoder],
    ) -> Result<(Heads, AttachmentByDecoder)> {
        let with = Decode {
            weights: model.decoding_weights(),
            segments: Vec::new(),
            decoders: decoders.to_vec(),
            trees: true,
            spans: false,
            open: true,
        };
        let shards = self.shards.iter().map(|shard| Stored::in_memory(Named::new(shard.shard.clone())));
        let decoded = plan.parser_with(model, with)?.parse(fleet, Stage::Decode, shards.collect())?;
        let flat: Vec<Vec<u32>> =
            self.sentences.iter().map(|sentence| dmv::heads::flat(sentence.n_words())).collect();
        let mut heads: Vec<Vec<Vec<u32>>> = vec![flat; decoders.len()];
        let n_known: usize = self.shards.iter().flat_map(|shard| &shard.positions).map(Vec::len).sum();
        let mut n_flat = self.sentences.len() - n_known;
        for (shard, decoded) in self.shards.iter().zip(&decoded) {
            for (positions, decoded) in shard.positions.iter().zip(decoded) {
                let found = decoded.log_z > f64::NEG_INFINITY;
                n_flat += if found { 0 } else { positions.len() };
                for (heads, tree) in heads.iter_mut().zip(&decoded.trees) {
                    for &position in positions.iter().filter(|_| found) {
                        heads[position as usize] = nouns::heads(&Tree::parse(tree)?)?.1;
                    }
                }
            }
        }
        let mut scores = BTreeMap::new();
        let mut by_decoder = Vec::new();
        for (&decoder, heads) in decoders.iter().zip(heads) {
            let with_heads = |(sentence, heads): (&Sentence, Vec<u32>)| Sentence {
                heads: Some(heads),
                ..sentence.clone()
            };
            let found: Vec<Sentence> = self.sentences.iter().zip(heads).map(with_heads).collect();
            if let Some(gold) = self.gold() {
                let gold = Source { name: "the sentences", items: gold };
                let found = Source { name: "their parses", items: &found };
                scores.insert(decoder_name(decoder).to_owned(), score(gold, found, Punctuation::Kept)?);
            }
            by_decoder.push((decoder_name(decoder), found));
        }
        let gold = self.gold().map(<[Sentence]>::to_vec);
        Ok((Heads { by_decoder, gold, n_flat, document: self.document.clone() }, scores))
    }
}

/// The longest sentence, in words, whose tree is found, as by `grammaton parse`; time and memory grow with the cube.
const LONGEST: usize = 200;

/// Shards of the sentences whose trees are to be found, which are those with known tags and no more than [`LONGEST`] words.
fn cut_to_find(sentences: impl Iterator<Item = Option<Marked>>) -> Vec<SentenceShard> {
    let short = |(tokens, _): &Marked| tokens.len() <= TOKENS_PER_WORD * LONGEST;
    let found = (0..).zip(sentences).filter_map(|(at, sentence)| Some((at, sentence.filter(short)?)));
    let (places, sentences): (Vec<u32>, Vec<Marked>) = found.unzip();
    let mut shards = shard::cut_marked(&sentences, &[], DEFAULT_SHARD_SYMBOLS);
    let positions = shards.iter_mut().flat_map(|shard| shard.positions.iter_mut().flatten());
    positions.for_each(|position| *position = places[*position as usize]);
    shards
}

/// Whether the method reads factors of arcs and known heads.
fn has_factors(job: &Job) -> bool {
    let estimator = Estimator::of(&job.points[0].inference);
    let reads =
        |own| RULED.iter().any(|(models, by)| models.contains(&job.model.model()) && by.contains(&own));
    estimator.is_some_and(reads)
}

/// Whether trees have the given heads.
fn constrains(job: &Job) -> bool {
    job.corpus.heads == GivenHeads::Constrain && has_factors(job)
}

/// The sentences with a projective tree that has their given heads; the others are left out, or refused.
fn with_tree(
    job: &Job,
    name: &str,
    sentences: Vec<Sentence>,
    notices: &mut Vec<String>,
) -> Result<Vec<Sentence>> {
    let (agreeing, others): (Vec<Sentence>, Vec<Sentence>) =
        sentences.into_iter().partition(|sentence| dmv::heads::have_tree(&sentence.given));
    let fault = |sentence: &Sentence| {
        format!(
            "{name}:{}: no projective tree with one root has the given heads of this sentence; correct them, or write `_`",
            sentence.line
        )
    };
    job.corpus.leave_out(others.iter().map(fault).collect(), "sentences", notices)?;
    Ok(agreeing)
}

/// The model of these tags, with adapted constituents if the job has such.
fn grammar(job: &Job, name: &str, tags: &[String]) -> Result<Grammar> {
    let adapted = &job.model.adapted;
    if adapted.is_empty() {
        // Points that differ in their rules are prepared apart.
        let inference = &job.points[0].inference;
        let Inference { rules, rules_weight, .. } = inference;
        let factors = if has_factors(job) { rules.factors(tags, *rules_weight) } else { Ok(None) };
        let factors = factors.with_context(|| format!("{name}: inference.rules"))?;
        let made = dmv::grammar::of_layout(tags, inference.layout(tags.len()));
        let made = made.with_context(|| format!("{name}: corpus.tags"))?;
        return made.with_factors(factors).with_context(|| format!("{name}: inference.rules"));
    }
    let adapted = classes::among(tags, adapted, "model.adapted")?;
    let made = nouns::grammar(tags, &adapted, job.inference.alpha.unwrap_or(1.0));
    made.with_context(|| format!("{name}: corpus.tags"))
}

/// The family of each parameter, for those that have one.
fn families(
    layout: Layout,
    tags: &[String],
    source: &FamiliesSource,
    notices: &mut Vec<String>,
) -> Result<Vec<Option<usize>>> {
    let families = match source {
        FamiliesSource::None => Families::default(),
        FamiliesSource::Ptb => Families::ptb(),
        FamiliesSource::Ud => Families::ud(),
        FamiliesSource::File(path) => input::families(path)?,
    };
    let without = tags.iter().filter(|tag| families.family(tag).is_none()).count();
    if *source != FamiliesSource::None && without == tags.len() {
        notices.push(format!(
            "inference.families: none of the tags is of a family of {source}; `ptb` are of the Penn Treebank, `ud` universal"
        ));
    }
    Ok(dmv::families::of_params(layout, tags, &families))
}

/// A file of sentences.
struct File {
    /// Name for messages.
    name: String,
    /// The whole file.
    document: Document,
    /// Its sentences, without punctuation unless the job keeps it.
    sentences: Vec<Sentence>,
}

impl File {
    /// Reads the file; refuses words without a tag.
    fn read(job: &Job, path: &Path, notices: &mut Vec<String>) -> Result<File> {
        let name = path.display().to_string();
        let mut document = input::sound_dependencies(path, job.corpus.tags)?;
        job.corpus.leave_out(std::mem::take(&mut document.unread), "sentences", notices)?;
        // Heads of some words are what constrains trees.
        let is_fault = |fault: &&SentenceError| !constrains(job) || fault.problem != Problem::SomeHeads;
        if let Some(first) = document.faults.iter().find(is_fault) {
            let n = document.faults.iter().filter(is_fault).count();
            notices.push(format!("the heads of {n} sentences are no tree, so no heads are scored: {first}"));
        }
        let Selection { sentences, n_empty, .. } =
            select(&document.sentences, job.corpus.punctuation(), usize::MAX);
        if n_empty > 0 {
            notices.push(format!("{name}: left out {n_empty} sentences of punctuation alone"));
        }
        let (untagged, sentences): (Vec<Sentence>, Vec<Sentence>) =
            sentences.into_iter().partition(|sentence| sentence.tags.iter().any(|tag| tag == "_"));
        let without_tag = |sentence: &Sentence| {
            format!(
                "{name}:{}: a word of this sentence has no tag; choose the column of the tags with corpus.tags (upos, xpos)",
                sentence.line
            )
        };
        let untagged = untagged.iter().map(without_tag).collect();
        job.corpus.leave_out(untagged, "sentences", notices)?;
        Ok(File { name, document, sentences })
    }
}

/// Selects sentences of at most `max_length` words, after punctuation was removed.
fn up_to(sentences: &[Sentence], max_length: u32) -> Selection {
    select(sentences, Punctuation::Kept, max_length as usize)
}
