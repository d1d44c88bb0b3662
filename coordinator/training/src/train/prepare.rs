//! Chooses the strings of the sticks and cuts the shards (§3.3 of Cohen, Blei & Smith 2010).

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use fleet::{Map, Stage};
use grammaton::data::Sentence;
use grammaton::data::treebank::Treebank;
use grammaton::forest::binary::Adapted;
use grammaton::forest::build::Builder;
use grammaton::forest::{Prepared as PreparedGrammar, TooAmbiguous};
use grammaton::grammar::{Grammar, ParamId};
use grammaton::methods::Basis;
use grammaton::models::Model;
use grammaton::prepare::candidates::{StringChoice, no_strings};
use grammaton::prepare::{self, Chosen, MostProbable, Prepared, ShardSet, Workers};
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Language, Lengths, Named, Work};

use super::input::{Dataset, Input, StringSource, WithoutForest};
use super::plan::{self, OnShards, Plan, PlannedShard, PlannedShards};
use super::spill::Stored;

/// Notices for the user about strings.
pub fn notices(chosen: &Chosen) -> Vec<String> {
    let added = (chosen.added > 0)
        .then(|| format!("added {} strings so that every sentence has a derivation", chosen.added));
    let underivable = (chosen.underivable > 0).then(|| {
        format!(
            "left out {} candidate strings, since strings that they are made of are not on the sticks",
            chosen.underivable
        )
    });
    added.into_iter().chain(underivable).collect()
}

/// The plan of a job, and its strings: those chosen before, if a checkpoint has them, or else chosen now.
pub fn plan(
    fleet: &dyn Map,
    input: &Input,
    items: Items,
    choice: &StringChoice,
    before: Option<Chosen>,
) -> Result<(Chosen, Plan)> {
    let sentences = match items {
        Items::Trees { treebank, shards } => {
            // Each shard has the parameters of the whole treebank, none of them named.
            return Ok((
                Chosen::default(),
                with_params(input, Basis::Treebank(treebank), shards, Vec::new()),
            ));
        }
        Items::Sentences(sentences) => sentences,
    };
    let on_fleet = OnFleet { fleet, input, sentences: &sentences };
    let grammar = &sentences.grammar;
    let prepared = match (&input.strings, before) {
        (StringSource::Known(strings), _) => prepare::with_strings(&on_fleet, grammar, strings)?,
        (StringSource::Candidates, None) => prepare::choose(&on_fleet, grammar, choice)?,
        (StringSource::Candidates, Some(chosen)) => prepare::with_chosen(&on_fleet, grammar, chosen)?,
        (StringSource::Tables, before) => {
            // Strings come from the tables of the chains; each shard has all parameters.
            let chosen = match before {
                Some(chosen) => chosen,
                None => {
                    prepare::with_tables(&on_fleet, grammar)?;
                    Chosen { lexicon: no_strings(&grammar.value), ..Chosen::default() }
                }
            };
            let lexicon = Named::new(chosen.lexicon.clone());
            let language = Language { grammar: grammar.clone(), lexicon };
            let params = (0..language.n_params() as u32).map(ParamId).collect();
            return Ok((chosen, with_params(input, Basis::Language(language), sentences.shards, params)));
        }
    };
    let Prepared { chosen, language, sentences: of_sentences, strings } = prepared;
    let of_sentences = sentences.shards.into_iter().zip(of_sentences);
    let of_sentences = of_sentences.map(|(shard, params)| PlannedShard { shard, params, strings: None });
    let of_strings = strings.into_iter().map(|(strings, params)| PlannedShard {
        shard: string_shard(strings.clone()),
        params,
        strings: Some(strings),
    });
    let shards = PlannedShards::new(of_sentences.chain(of_strings).collect(), input.spill.clone());
    Ok((chosen, Plan { basis: Basis::Language(language), shards: Arc::new(shards) }))
}

/// A fleet that computes on the sentences of a job.
struct OnFleet<'a> {
    fleet: &'a dyn Map,
    input: &'a Input,
    sentences: &'a Sentences,
}

impl Workers for OnFleet<'_> {
    type Error = anyhow::Error;
    type Params = Stored<Vec<ParamId>>;

    fn compute(
        &self,
        language: &Language,
        on: ShardSet<'_>,
        work: Work,
        each: &mut dyn FnMut(usize, Answer) -> Result<()>,
    ) -> Result<()> {
        let all = &self.sentences.shards;
        let shards = match on {
            ShardSet::Sentences => all.clone(),
            ShardSet::SomeSentences(numbers) => numbers.iter().map(|&shard| all[shard].clone()).collect(),
            ShardSet::Strings(strings) => strings.iter().cloned().map(string_shard).collect(),
        };
        let stage = match work {
            Work::Candidates(_) => Stage::Candidates,
            Work::Cover => Stage::Cover,
            Work::Decode(_) => Stage::Decode,
            _ => Stage::Index,
        };
        plan::map(self.fleet, stage, OnShards { language: language.clone(), shards, work }, each)?;
        Ok(())
    }

    fn keep(&self, params: Vec<ParamId>) -> Result<Stored<Vec<ParamId>>> {
        self.input.spill.keep(params)
    }

    fn accept(&self, unparsable: &[(usize, u32)]) -> Result<()> {
        refuse_unparsable(self.input, &self.sentences.grammar.value, unparsable)
    }

    fn folder(&self) -> &Path {
        self.input.spill.folder()
    }
}

fn string_shard(strings: std::ops::Range<u32>) -> Stored<Shard> {
    Stored::in_memory(Named::new(Shard::Strings(strings)))
}

/// Sentences without a forest, by line and description: those that the grammar cannot derive, and those with too many derivations. None of
/// treebanks, whose trees are derivations. A sentence that occurs several times has the line of its first occurrence.
pub fn without_forest(fleet: &dyn Map, input: &Input) -> Result<[Vec<(u32, String)>; 2]> {
    let [mut underivable, mut too_ambiguous] = [const { Vec::new() }; 2];
    each_without_forest(fleet, input, |shard, item, reason| {
        let (line, described) = (input.text.lines(shard, item)?[0], input.text.describe(shard, item)?);
        match reason {
            Some(error) => too_ambiguous.push((line, format!("{described}: {error}"))),
            None => underivable.push((line, described + &with_brackets(input, shard, item)?)),
        }
        Ok(())
    })?;
    Ok([underivable, too_ambiguous])
}

/// The lines of these sentences.
pub fn lines_without_forest(fleet: &dyn Map, input: &Input) -> Result<WithoutForest> {
    let mut lines = WithoutForest::default();
    each_without_forest(fleet, input, |shard, item, reason| {
        let of_reason = if reason.is_some() { &mut lines.too_ambiguous } else { &mut lines.underivable };
        of_reason.extend(input.text.lines(shard, item)?);
        Ok(())
    })?;
    Ok(lines)
}

/// Calls `each` with shard and position of these sentences, and the error of those with too many derivations.
fn each_without_forest(
    fleet: &dyn Map,
    input: &Input,
    mut each: impl FnMut(usize, u32, Option<TooAmbiguous>) -> Result<()>,
) -> Result<()> {
    let Items::Sentences(sentences) = Items::new(input) else { return Ok(()) };
    let mut reasons = Reasons::new(&sentences.grammar.value);
    for (shard, item) in items_without_forest(fleet, input, &sentences)? {
        each(shard, item, reasons.too_ambiguous(input, shard, item)?)?;
    }
    Ok(())
}

/// Clause on the brackets that the trees of a sentence must agree with; empty if there are none.
fn with_brackets(input: &Input, shard: usize, item: u32) -> Result<String> {
    let Some(brackets) = &input.brackets else { return Ok(String::new()) };
    let shard = input.text.shards[shard].named()?;
    let Shard::Sentences(sentences) = &*shard.value else { return Ok(String::new()) };
    let places = brackets.places(&sentences[item as usize].tokens);
    Ok(places.map_or_else(String::new, |places| format!(" with the brackets of {places}")))
}

/// Finds out why a sentence has no forest.
struct Reasons(PreparedGrammar);

impl Reasons {
    fn new(grammar: &Arc<Grammar>) -> Reasons {
        Reasons(PreparedGrammar::new(grammar.clone(), no_strings(grammar)))
    }

    /// The error of a sentence with too many derivations; `None` if the grammar cannot derive it.
    fn too_ambiguous(&mut self, input: &Input, shard: usize, item: u32) -> Result<Option<TooAmbiguous>> {
        let shard = input.text.shards[shard].named()?;
        let Shard::Sentences(sentences) = &*shard.value else { return Ok(None) };
        let Sentence { tokens, marks, .. } = &sentences[item as usize];
        if self.0.binary.check_dense(tokens.len()).is_ok() {
            return Ok(None); // no sentence of this length has too many
        }
        let mut builder = Builder::new(&self.0.binary, &self.0.strings, Adapted::Rules);
        Ok(builder.build_within(Grammar::START.0, tokens, &marks.brackets).err())
    }
}

/// The shards of these sentences, and their positions there.
fn items_without_forest(fleet: &dyn Map, input: &Input, sentences: &Sentences) -> Result<Vec<(usize, u32)>> {
    let without_strings = |lengths| (no_strings(&sentences.grammar.value), Work::Candidates(lengths));
    let (lexicon, work) = match &input.strings {
        StringSource::Known(strings) => (strings.clone(), Work::Index),
        StringSource::Candidates => without_strings(Lengths::NONE),
        StringSource::Tables => without_strings(Lengths::CHAINS),
    };
    let language = Language { grammar: sentences.grammar.clone(), lexicon: Named::new(lexicon) };
    prepare::without_forest(&OnFleet { fleet, input, sentences }, &language, work)
}

/// The most probable trees of all sentences by a model.
pub fn most_probable_trees(fleet: &dyn Map, input: &Input, model: &Model) -> Result<MostProbable> {
    let Items::Sentences(sentences) = &Items::new(input) else { return Ok(MostProbable::default()) };
    let shard = |at: usize| sentences.shards[at].value();
    prepare::most_probable_trees(&OnFleet { fleet, input, sentences }, model, shard)
}

/// Training data of a job, named by its content.
pub enum Items {
    /// Sentences, with their grammar.
    Sentences(Sentences),
    /// Trees of a treebank.
    Trees {
        /// All of it.
        treebank: Arc<Treebank>,
        /// Its trees.
        shards: Vec<Stored<Shard>>,
    },
}

impl Items {
    /// The items of a job.
    pub fn new(input: &Input) -> Items {
        let shards = input.text.shards.clone();
        match &input.dataset {
            Dataset::Trees(trees) => Items::Trees { treebank: trees.treebank.clone(), shards },
            Dataset::Text { grammar } | Dataset::Dependencies { grammar, .. } => {
                Items::Sentences(Sentences { grammar: Named::new(grammar.clone()), shards })
            }
        }
    }

    /// Their shards.
    pub fn shards(&self) -> &[Stored<Shard>] {
        match self {
            Items::Sentences(Sentences { shards, .. }) | Items::Trees { shards, .. } => shards,
        }
    }
}

/// The grammar and the shards of sentences, named by their content.
pub struct Sentences {
    /// The grammar.
    pub grammar: Named<Grammar>,
    /// The sentences.
    pub shards: Vec<Stored<Shard>>,
}

/// The plan of shards that all have the same parameters.
fn with_params(input: &Input, basis: Basis, shards: Vec<Stored<Shard>>, params: Vec<ParamId>) -> Plan {
    let params = Stored::in_memory(Named::new(params));
    let planned = |shard| PlannedShard { shard, params: params.clone(), strings: None };
    let shards = PlannedShards::new(shards.into_iter().map(planned).collect(), input.spill.clone());
    Plan { basis, shards: Arc::new(shards) }
}

/// Names the first of the sentences without a derivation, or with too many, given by shard and position in it.
fn refuse_unparsable(input: &Input, grammar: &Arc<Grammar>, unparsable: &[(usize, u32)]) -> Result<()> {
    let Some(&(shard, item)) = unparsable.first() else { return Ok(()) };
    if let Some(too_ambiguous) = Reasons::new(grammar).too_ambiguous(input, shard, item)? {
        bail!(
            "{}: {too_ambiguous}, or skip it with corpus.on_unparsable = \"skip\"",
            input.text.describe(shard, item)?
        );
    }
    let others = match unparsable.len() {
        1 => String::new(),
        n => format!(" (and {} more sentences)", n - 1),
    };
    bail!(
        "{}: the grammar cannot derive this sentence{}{others}; add the rules that it lacks, leave it out, or skip it with \
         corpus.on_unparsable = \"skip\"",
        input.text.describe(shard, item)?,
        with_brackets(input, shard, item)?
    );
}
