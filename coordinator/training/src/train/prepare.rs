//! Chooses the strings of the sticks and cuts the shards (§3.3 of Cohen, Blei & Smith 2010).

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use fleet::{Map, Stage};
use grammaton::data::treebank::Treebank;
use grammaton::forest::binary::Adapted;
use grammaton::forest::build::Builder;
use grammaton::forest::{Prepared, TooAmbiguous};
use grammaton::grammar::ParamId;
use grammaton::grammar::lexicon::{Lexicon, StickStrings};
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::work::shard::DEFAULT_SHARD_SYMBOLS;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Index, Language, Lengths, Named, Work};
use serde::{Deserialize, Serialize};

pub use super::candidates::Choice;
use super::candidates::{self, no_strings};
use super::input::{Dataset, Input, StringSource, WithoutForest};
use super::plan::{self, Basis, OnShards, Plan, PlannedShard};
use super::spill::Kept;

/// The strings of the sticks, and what was done on the way to them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Chosen {
    /// The strings.
    pub lexicon: Lexicon,
    /// Strings left out because their own nonterminal cannot derive them from the others.
    pub underivable: usize,
    /// Strings added so that every sentence has a derivation.
    pub added: usize,
}

impl Chosen {
    /// Notices for the user about them.
    pub fn notices(&self) -> Vec<String> {
        let added = (self.added > 0)
            .then(|| format!("added {} strings so that every sentence has a derivation", self.added));
        let underivable = (self.underivable > 0).then(|| {
            format!(
                "left out {} candidate strings, since strings that they are made of are not on the sticks",
                self.underivable
            )
        });
        added.into_iter().chain(underivable).collect()
    }
}

/// The plan of a job, and its strings: those chosen before, if a checkpoint has them, or else chosen now.
pub fn plan(
    fleet: &dyn Map,
    input: &Input,
    items: Items,
    choice: &Choice,
    before: Option<Chosen>,
) -> Result<(Chosen, Plan)> {
    let sentences = match items {
        Items::Trees { treebank, shards } => {
            // Each shard has the parameters of the whole treebank, none of them named.
            return Ok((Chosen::default(), with_params(Basis::Treebank(treebank), shards, Vec::new())));
        }
        Items::Sentences(sentences) => sentences,
    };
    let chosen = match (&input.strings, before) {
        (StringSource::Known(strings), _) => return given(fleet, input, sentences, strings),
        (StringSource::Candidates, None) => return prepare(fleet, input, sentences, choice),
        (StringSource::Tables, None) => without_strings(fleet, input, &sentences)?,
        (StringSource::Candidates | StringSource::Tables, Some(chosen)) => chosen,
    };
    let plan = match input.strings {
        StringSource::Tables => sentences.for_chains(&chosen),
        StringSource::Known(_) | StringSource::Candidates => again(fleet, input, sentences, &chosen)?,
    };
    Ok((chosen, plan))
}

/// Chooses the strings, and plans with them.
pub fn prepare(
    fleet: &dyn Map,
    input: &Input,
    sentences: Sentences,
    choice: &Choice,
) -> Result<(Chosen, Plan)> {
    let grammar = &sentences.grammar.value;
    let mut lexicon = Named::new(candidates(fleet, input, choice, &sentences)?);

    let mut underivable = 0;
    let (mut strings, mut indexes);
    loop {
        strings = string_shards(grammar, &lexicon.value);
        indexes = index(fleet, input, strings.on(&sentences, &lexicon))?;
        let gone = unparsable_strings(&strings, &indexes);
        if gone.is_empty() {
            break;
        }
        underivable += gone.len();
        let n_params = |lexicon: &Named<Lexicon>| lexicon.value.space(grammar).n_params();
        let fewer = Named::new(without(grammar, &lexicon.value, &gone));
        ensure!(
            n_params(&fewer) < n_params(&lexicon),
            "strings without a derivation that are not on the sticks: a worker computes wrongly; connect another worker"
        );
        lexicon = fewer;
    }

    let mut of_sentences = index(fleet, input, sentences.tasks(&lexicon, Work::Index))?;
    let missing = missing(fleet, sentences.uncovered(&lexicon, &of_sentences))?;
    let added = missing.len();
    if added > 0 {
        let mut covered = lexicon.value.as_ref().clone();
        for (symbol, string) in missing {
            let stick = covered.sticks.iter_mut().find(|stick| stick.symbol == symbol);
            stick.context("internal error: a string of no stick; please report it")?.strings.push(&string);
        }
        lexicon = Named::new(covered);
        strings = string_shards(grammar, &lexicon.value);
        indexes = index(fleet, input, strings.on(&sentences, &lexicon))?;
        of_sentences = index(fleet, input, sentences.tasks(&lexicon, Work::Index))?;
    }
    refuse_unparsable(input, &sentences.grammar.value, &unparsable_items(&of_sentences))?;
    let chosen = Chosen { lexicon: lexicon.value.as_ref().clone(), underivable, added };
    Ok((chosen, sentences.plan(lexicon, of_sentences, strings, indexes)))
}

/// Plans for a PCFG, whose strings are given; refuses sentences that the grammar cannot derive.
fn given(fleet: &dyn Map, input: &Input, sentences: Sentences, strings: &Lexicon) -> Result<(Chosen, Plan)> {
    let lexicon = Named::new(strings.clone());
    let indexes = index(fleet, input, sentences.tasks(&lexicon, Work::Index))?;
    refuse_unparsable(input, &sentences.grammar.value, &unparsable_items(&indexes))?;
    let shards = sentences.shards.into_iter().zip(indexes);
    let shards = shards.map(|(shard, index)| PlannedShard { shard, params: index.params, strings: None });
    let chosen = Chosen { lexicon: strings.clone(), underivable: 0, added: 0 };
    let language = Language { grammar: sentences.grammar, lexicon };
    Ok((chosen, Plan { basis: Basis::Language(language), shards: Arc::new(shards.collect()) }))
}

/// Sentences without a forest, by line and description: those that the grammar cannot derive, and those with too many derivations. None of
/// treebanks, whose trees are derivations. A sentence that occurs several times has the line of its first occurrence.
pub fn without_forest(fleet: &dyn Map, input: &Input) -> Result<[Vec<(u32, String)>; 2]> {
    let [mut underivable, mut too_ambiguous] = [const { Vec::new() }; 2];
    each_without_forest(fleet, input, |shard, item, reason| {
        let (line, described) = (input.text.lines(shard, item)?[0], input.text.describe(shard, item)?);
        match reason {
            Some(error) => too_ambiguous.push((line, format!("{described}: {error}"))),
            None => underivable.push((line, described)),
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

/// Finds out why a sentence has no forest.
struct Reasons(Prepared);

impl Reasons {
    fn new(grammar: &Arc<Grammar>) -> Reasons {
        Reasons(Prepared::new(grammar.clone(), no_strings(grammar)))
    }

    /// The error of a sentence with too many derivations; `None` if the grammar cannot derive it.
    fn too_ambiguous(&mut self, input: &Input, shard: usize, item: u32) -> Result<Option<TooAmbiguous>> {
        let shard = input.text.shards[shard].named()?;
        let Shard::Sentences(sentences) = &*shard.value else { return Ok(None) };
        let tokens = &sentences[item as usize].tokens;
        if self.0.binary.check_dense(tokens.len()).is_ok() {
            return Ok(None); // no sentence of this length has too many
        }
        let mut builder = Builder::new(&self.0.binary, &self.0.strings, Adapted::Rules);
        Ok(builder.build_here(Grammar::START.0, tokens).err())
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
    let stage = if matches!(work, Work::Index) { Stage::Index } else { Stage::Candidates };
    let mut found = Vec::new();
    plan::map(fleet, stage, sentences.tasks(&Named::new(lexicon), work), |shard, answer| {
        let unparsable = match answer {
            Answer::Candidates(candidates) => candidates.unparsable,
            Answer::Index(index) => index.unparsable,
            _ => Vec::new(),
        };
        found.extend(unparsable.into_iter().map(|item| (shard, item)));
        Ok(())
    })?;
    Ok(found)
}

/// Prepares chains over an adaptor grammar, whose strings come from their tables, without strings. Refuses sentences that the grammar
/// cannot derive.
fn without_strings(fleet: &dyn Map, input: &Input, sentences: &Sentences) -> Result<Chosen> {
    let grammar = &sentences.grammar.value;
    refuse_unparsable(input, grammar, &items_without_forest(fleet, input, sentences)?)?;
    Ok(Chosen { lexicon: no_strings(grammar), underivable: 0, added: 0 })
}

/// Plans with strings that were chosen before.
fn again(fleet: &dyn Map, input: &Input, sentences: Sentences, chosen: &Chosen) -> Result<Plan> {
    let lexicon = Named::new(chosen.lexicon.clone());
    let strings = string_shards(&sentences.grammar.value, &lexicon.value);
    let indexes = index(fleet, input, strings.on(&sentences, &lexicon))?;
    let of_sentences = index(fleet, input, sentences.tasks(&lexicon, Work::Index))?;
    Ok(sentences.plan(lexicon, of_sentences, strings, indexes))
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
        shards: Vec<Kept<Shard>>,
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
    pub fn shards(&self) -> &[Kept<Shard>] {
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
    pub shards: Vec<Kept<Shard>>,
}

/// Index of a shard: the parameters that it touches.
struct Indexed {
    params: Kept<Vec<ParamId>>,
    unparsable: Vec<u32>,
}

/// Shards of stick strings, by parameter.
struct StringShards(Vec<Range<u32>>);

impl Sentences {
    fn tasks(&self, lexicon: &Named<Lexicon>, work: Work) -> OnShards {
        let language = Language { grammar: self.grammar.clone(), lexicon: lexicon.clone() };
        OnShards { language, shards: self.shards.clone(), work }
    }

    /// The plan of the sentences alone, each shard having all parameters.
    pub fn for_chains(self, chosen: &Chosen) -> Plan {
        let language = Language { grammar: self.grammar, lexicon: Named::new(chosen.lexicon.clone()) };
        let params = (0..language.n_params() as u32).map(ParamId).collect();
        with_params(Basis::Language(language), self.shards, params)
    }

    /// Tasks to cover those among which some have no derivation.
    fn uncovered(&self, lexicon: &Named<Lexicon>, indexes: &[Indexed]) -> OnShards {
        let shards = self.shards.iter().zip(indexes).filter(|(_, index)| !index.unparsable.is_empty());
        let shards = shards.map(|(shard, _)| shard.clone()).collect();
        OnShards { shards, ..self.tasks(lexicon, Work::Cover) }
    }

    /// The plan of the sentences and `strings`.
    fn plan(
        self,
        lexicon: Named<Lexicon>,
        of_sentences: Vec<Indexed>,
        strings: StringShards,
        of_strings: Vec<Indexed>,
    ) -> Plan {
        let sentences = self.shards.into_iter().zip(of_sentences);
        let sentences =
            sentences.map(|(shard, index)| PlannedShard { shard, params: index.params, strings: None });
        let strings = strings.shards().zip(&strings.0).zip(of_strings);
        let strings = strings.map(|((shard, strings), index)| PlannedShard {
            shard,
            params: index.params,
            strings: Some(strings.clone()),
        });
        let shards = Arc::new(sentences.chain(strings).collect());
        Plan { basis: Basis::Language(Language { grammar: self.grammar, lexicon }), shards }
    }
}

/// The plan of shards that all have the same parameters.
fn with_params(basis: Basis, shards: Vec<Kept<Shard>>, params: Vec<ParamId>) -> Plan {
    let params = Kept::at_hand(Named::new(params));
    let planned = |shard| PlannedShard { shard, params: params.clone(), strings: None };
    Plan { basis, shards: Arc::new(shards.into_iter().map(planned).collect()) }
}

impl StringShards {
    fn shards(&self) -> impl Iterator<Item = Kept<Shard>> {
        self.0.iter().map(|strings| Kept::at_hand(Named::new(Shard::Strings(strings.clone()))))
    }

    /// Tasks to index them.
    fn on(&self, sentences: &Sentences, lexicon: &Named<Lexicon>) -> OnShards {
        OnShards { shards: self.shards().collect(), ..sentences.tasks(lexicon, Work::Index) }
    }
}

/// Counts constituents and ranks their strings; refuses sentences that the grammar cannot derive.
fn candidates(fleet: &dyn Map, input: &Input, choice: &Choice, sentences: &Sentences) -> Result<Lexicon> {
    let grammar = &sentences.grammar.value;
    let refuse = |unparsable: &[(usize, u32)]| refuse_unparsable(input, grammar, unparsable);
    let tasks = |lexicon: Lexicon, work| sentences.tasks(&Named::new(lexicon), work);
    candidates::choose(fleet, &sentences.grammar.value, tasks, choice, input.spill.folder(), refuse)
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
        "{}: the grammar cannot derive this sentence{others}; add the rules that it lacks, leave it out, or skip it with \
         corpus.on_unparsable = \"skip\"",
        input.text.describe(shard, item)?
    );
}

/// Sentences without a forest, by shard and position there.
fn unparsable_items(indexes: &[Indexed]) -> Vec<(usize, u32)> {
    let of_shard = |(shard, index): (usize, &Indexed)| -> Vec<(usize, u32)> {
        index.unparsable.iter().map(|&item| (shard, item)).collect()
    };
    indexes.iter().enumerate().flat_map(of_shard).collect()
}

fn missing(fleet: &dyn Map, tasks: OnShards) -> Result<Vec<(SymbolId, Vec<SymbolId>)>> {
    let mut missing = BTreeSet::new();
    plan::map(fleet, Stage::Cover, tasks, |_, answer| {
        if let Answer::Missing(strings) = answer {
            missing.extend(strings);
        }
        Ok(())
    })?;
    Ok(missing.into_iter().collect())
}

fn index(fleet: &dyn Map, input: &Input, tasks: OnShards) -> Result<Vec<Indexed>> {
    let mut indexes = Vec::new();
    plan::map(fleet, Stage::Index, tasks, |_, answer| {
        if let Answer::Index(Index { params, unparsable }) = answer {
            indexes.push(Indexed { params: input.spill.keep(params)?, unparsable });
        }
        Ok(())
    })?;
    Ok(indexes)
}

/// Runs of stick strings, in parameter order: one ends with the string that brings it to the size of a shard.
fn string_shards(grammar: &Grammar, lexicon: &Lexicon) -> StringShards {
    let mut shards = Vec::new();
    for (params, stick) in lexicon.space(grammar).sticks().zip(&lexicon.sticks) {
        let (mut start, mut n_symbols) = (params.start, 0);
        for (param, string) in params.clone().zip(&stick.strings) {
            n_symbols += string.len();
            if n_symbols >= DEFAULT_SHARD_SYMBOLS as usize {
                shards.push(start..param + 1);
                (start, n_symbols) = (param + 1, 0);
            }
        }
        if start < params.end {
            shards.push(start..params.end);
        }
    }
    StringShards(shards)
}

/// Parameters of the strings that have no derivation, ascending.
fn unparsable_strings(shards: &StringShards, indexes: &[Indexed]) -> Vec<u32> {
    let of_shard = |(strings, index): (&Range<u32>, &Indexed)| -> Vec<u32> {
        index.unparsable.iter().map(|&item| strings.start.saturating_add(item)).collect()
    };
    shards.0.iter().zip(indexes).flat_map(of_shard).collect()
}

fn without(grammar: &Grammar, lexicon: &Lexicon, gone: &[u32]) -> Lexicon {
    let space = lexicon.space(grammar);
    let sticks = space.sticks().zip(&lexicon.sticks).map(|(params, stick)| {
        let kept = params.zip(&stick.strings);
        let kept = kept.filter(|(param, _)| gone.binary_search(param).is_err());
        StickStrings { symbol: stick.symbol, strings: kept.map(|(_, string)| string).collect() }
    });
    Lexicon { sticks: sticks.collect() }
}
