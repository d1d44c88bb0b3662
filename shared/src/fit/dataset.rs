//! Datasets that models are trained on: a corpus, a treebank, and tagged sentences.

use std::sync::Arc;

use super::in_process::SentenceLines;
use super::{Cause, none};
use crate::data::corpus::{Corpus, Format, Unit};
use crate::data::dependency::Sentence;
use crate::data::tags::families::Families;
use crate::data::tags::{Tagged, classes};
use crate::data::treebank::Treebank;
use crate::grammar::lexicon::{Lexicon, Substrings};
use crate::grammar::{Grammar, SymbolId};
use crate::models::dmv::rules::RuleSet;
use crate::models::dmv::{self, nouns};
use crate::models::latent;
use crate::settings::inference::FamiliesSource;
use crate::settings::method::{Estimator, RULED};
use crate::settings::{Inference, Method, Model, ModelKind};
use crate::work::shard::{SentenceShard, Shard, cut_blocks, cut_marked, cut_trees};
use crate::work::task::Named;

/// What a [`super::Fit`] is of.
#[derive(Clone, Copy)]
pub enum ModelSource<'a> {
    /// This grammar.
    Grammar(&'a Grammar),
    /// The rules of the treebank.
    Treebank,
    /// The dependency model, with these tags adapted.
    Dependencies { adapted: &'a [String] },
}

/// A dataset that is ready to be prepared.
pub struct ShardedData {
    pub model: Model,
    pub basis: Basis,
    pub shards: Vec<Named<Shard>>,
    /// Positions of the sentences, by shard and position in it.
    pub positions: Vec<Vec<Vec<u32>>>,
    pub sentence_lines: SentenceLines,
    pub strings: Strings,
    pub segments: Vec<SymbolId>,
    pub written: (Format, Unit),
    pub tagged: Option<Tagged>,
    /// The family of each parameter, if there are families.
    pub families: Option<Vec<Option<usize>>>,
}

/// Grammar or treebank.
pub enum Basis {
    Grammar(Named<Grammar>),
    Treebank(Arc<Treebank>),
}

/// Sources of the strings that a model has parameters for.
pub enum Strings {
    Known(Lexicon),
    Candidates,
    Tables,
}

/// A dataset, in memory.
pub trait Dataset {
    /// Cuts it into shards for a model.
    #[doc(hidden)]
    fn ready(
        &self,
        of: &ModelSource<'_>,
        inference: &Inference,
        shard_symbols: u32,
        segments: &[String],
    ) -> Result<ShardedData, Cause>;
}

/// Symbols of a shard for [`cut`]: 0 stands for a single shard.
fn symbols(shard_symbols: u32) -> u32 {
    if shard_symbols == 0 { u32::MAX } else { shard_symbols }
}

/// Shards with their names, and positions.
fn named(shards: Vec<SentenceShard>) -> (Vec<Named<Shard>>, Vec<Vec<Vec<u32>>>) {
    shards.into_iter().map(|cut| (Named::new(cut.shard), cut.positions)).unzip()
}

fn sentence_lines(source_name: &str, positions: &[Vec<Vec<u32>>], lines: &[u32]) -> SentenceLines {
    let line = |of_sentence: &Vec<u32>| of_sentence.first().map_or(0, |&at| lines[at as usize]);
    let lines = positions.iter().map(|of_shard| of_shard.iter().map(line).collect());
    SentenceLines { source_name: source_name.to_owned(), lines: lines.collect() }
}

impl Dataset for Corpus {
    fn ready(
        &self,
        of: &ModelSource<'_>,
        inference: &Inference,
        shard_symbols: u32,
        segments: &[String],
    ) -> Result<ShardedData, Cause> {
        let ModelSource::Grammar(grammar) = of else { return Err(Cause::Empty) };
        let model = Model::of(
            if grammar.adapted().next().is_some() { ModelKind::Adaptor } else { ModelKind::Pcfg },
            false,
        );
        let chains = model == Model::Adaptor && inference.method == Method::Hastings;
        let mut grammar = (*grammar).clone();
        if model == Model::Pcfg {
            grammar = grammar.with_vocabulary(self.symbols.iter().map(String::as_str));
        }
        let sentences = self.tokens_for(&grammar)?;
        let of_strings: Vec<SymbolId> =
            grammar.substring_rules().map(|rule| grammar.rule(rule).parent).collect();
        let strings = match model {
            Model::Adaptor if chains => Strings::Tables,
            Model::Adaptor => Strings::Candidates,
            _ => {
                let mut substrings = Substrings::new(inference.max_string as usize);
                if !of_strings.is_empty() {
                    substrings.add(&sentences)?;
                }
                Strings::Known(substrings.lexicon(&grammar))
            }
        };
        let shard_symbols = if chains { u32::MAX } else { symbols(shard_symbols) };
        let (shards, positions) = named(cut_blocks(&sentences, &self.occurrences, shard_symbols));
        let segments = match (segments, &of_strings[..]) {
            ([], [_, ..]) => of_strings,
            ([], []) => {
                let word = grammar.symbol("Word").filter(|&word| grammar.is_nonterminal(word));
                word.into_iter().collect()
            }
            (names, _) => names.iter().map(|name| segment(&grammar, name)).collect::<Result<_, _>>()?,
        };
        Ok(ShardedData {
            model,
            basis: Basis::Grammar(Named::new(grammar)),
            shards,
            sentence_lines: sentence_lines(&self.source_name, &positions, &self.lines),
            positions,
            strings,
            segments,
            written: (self.format, self.unit),
            tagged: None,
            families: None,
        })
    }
}

fn segment(grammar: &Grammar, name: &str) -> Result<SymbolId, Cause> {
    let symbol = grammar.symbol(name).filter(|&symbol| grammar.is_nonterminal(symbol));
    symbol.ok_or_else(|| Cause::Segment {
        name: name.to_owned(),
        known: grammar.symbols[..grammar.n_nonterminals as usize].join(", "),
    })
}

impl Dataset for Treebank {
    fn ready(
        &self,
        _: &ModelSource<'_>,
        inference: &Inference,
        shard_symbols: u32,
        _: &[String],
    ) -> Result<ShardedData, Cause> {
        latent::Layout::check(&self.rules, inference.subtypes)?;
        let (shards, positions) = named(cut_trees(self, symbols(shard_symbols)));
        Ok(ShardedData {
            model: Model::PcfgLa,
            basis: Basis::Treebank(Arc::new(self.clone())),
            shards,
            positions,
            sentence_lines: SentenceLines::default(),
            strings: none(),
            segments: Vec::new(),
            written: (Format::Tokens, Unit::Token),
            tagged: None,
            families: None,
        })
    }
}

impl Dataset for [Sentence] {
    fn ready(
        &self,
        of: &ModelSource<'_>,
        inference: &Inference,
        shard_symbols: u32,
        _: &[String],
    ) -> Result<ShardedData, Cause> {
        let ModelSource::Dependencies { adapted } = of else { return Err(Cause::Empty) };
        let tagged = Tagged::new(self);
        let model = Model::of(ModelKind::Dmv, !adapted.is_empty());
        let grammar = match model {
            Model::AdaptedDmv => {
                let adapted = classes::among(&tagged.tags.names, adapted, "adapted")?;
                nouns::grammar(&tagged.tags.names, &adapted, inference.alpha.unwrap_or(1.0))?
            }
            _ => {
                let reads =
                    Estimator::of(inference).is_some_and(|own| RULED.iter().any(|(_, by)| by.contains(&own)));
                let rules = if reads { &inference.rules } else { &RuleSet::None };
                let factors = rules.factors(&tagged.tags.names, inference.rules_weight)?;
                let layout = inference.layout(tagged.tags.names.len());
                dmv::grammar::of_layout(&tagged.tags.names, layout)?.with_factors(factors)?
            }
        };
        for component in &inference.components {
            component.resolve(&tagged.tags.names)?;
        }
        let tokens = tagged.sentences.iter().map(|tags| nouns::tokens(&grammar, tags));
        let marked = |(tokens, sentence)| (tokens, dmv::factors::marks(&grammar, sentence, false));
        let marked: Vec<_> = tokens.zip(self).map(marked).collect();
        let (shards, positions) = named(cut_marked(&marked, &[], symbols(shard_symbols)));
        let lines: Vec<u32> = self.iter().map(|sentence| sentence.line).collect();
        let families = match &inference.families {
            FamiliesSource::None => Families::default(),
            FamiliesSource::Ptb => Families::ptb(),
            FamiliesSource::Ud => Families::ud(),
            FamiliesSource::File(path) => {
                let unreadable = |source| Cause::Read { path: path.clone(), source };
                let text = std::fs::read_to_string(path).map_err(unreadable)?;
                Families::parse(&text, &path.display().to_string())?
            }
        };
        let layout = dmv::Layout::new(tagged.tags.names.len());
        let families = dmv::families::of_params(layout, &tagged.tags.names, &families);
        Ok(ShardedData {
            model,
            basis: Basis::Grammar(Named::new(grammar)),
            shards,
            sentence_lines: sentence_lines("the sentences", &positions, &lines),
            positions,
            strings: if model.is_adapted() { Strings::Candidates } else { none() },
            segments: Vec::new(),
            written: (Format::Tokens, Unit::Token),
            tagged: Some(tagged),
            families: Some(families),
        })
    }
}
