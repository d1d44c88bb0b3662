//! Chooses the strings of the sticks and cuts the shards (§3.3 of Cohen, Blei & Smith 2010).

use std::sync::Arc;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use shared::adaptor::candidates::Tally;
use shared::corpus::shards::DEFAULT_SHARD_SYMBOLS;
use shared::grammar::{Grammar, SymbolId};
use shared::shard::{Lexicon, ParamId, Shard, StickStrings, Strings};
use shared::task::{Answer, Index, Named, Task, Work};
use shared::treebank::Treebank;

use super::input::Input;
use super::plan::{Plan, PlannedShard};
use crate::fleet::{Map, Stage};

/// How strings are chosen.
pub struct Choice {
    /// Strings per adapted nonterminal.
    pub truncation: usize,
    /// ρ of Eq. 3.
    pub rho: f64,
    /// Longest string.
    pub max_length: u32,
}

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

/// The plan of a job, and its strings: those chosen before, if a checkpoint has them, or else chosen now.
pub fn plan(
    fleet: &dyn Map,
    input: &Input,
    sentences: Sentences,
    choice: &Choice,
    before: Option<Chosen>,
) -> Result<(Chosen, Plan)> {
    if let Some(trees) = &input.trees {
        return Ok((Chosen::default(), sentences.for_trees(trees.treebank.clone())));
    }
    if let Some(strings) = &input.strings {
        return given(fleet, input, sentences, strings);
    }
    let chosen = match before {
        Some(chosen) => chosen,
        None if input.chains => without_strings(fleet, input, &sentences)?,
        None => return prepare(fleet, input, sentences, choice),
    };
    let plan = if input.chains { sentences.for_chains(&chosen) } else { again(fleet, sentences, &chosen)? };
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
    let count = Work::Candidates { max_length: choice.max_length };
    let tasks = |empty: &Named<Lexicon>| sentences.tasks(empty, &sentences.shards, &count);
    let mut lexicon = Named::new(candidates(fleet, input, choice, tasks)?);

    let mut underivable = 0;
    let (mut strings, mut indexes);
    loop {
        strings = string_shards(grammar, &lexicon.value);
        indexes = index(fleet, sentences.tasks(&lexicon, &strings, &Work::Index))?;
        let gone = unparsable_strings(&strings, &indexes);
        if gone.is_empty() {
            break;
        }
        underivable += gone.len();
        lexicon = Named::new(without(grammar, &lexicon.value, &gone));
    }

    let missing = missing(fleet, sentences.tasks(&lexicon, &sentences.shards, &Work::Cover))?;
    let added = missing.len();
    if added > 0 {
        let mut covered = lexicon.value.as_ref().clone();
        for (symbol, string) in missing {
            let stick = covered.sticks.iter_mut().find(|stick| stick.symbol == symbol);
            stick.expect("workers answer with adapted nonterminals").strings.push(&string);
        }
        lexicon = Named::new(covered);
        strings = string_shards(grammar, &lexicon.value);
        indexes = index(fleet, sentences.tasks(&lexicon, &strings, &Work::Index))?;
    }
    let chosen = Chosen { lexicon: lexicon.value.as_ref().clone(), underivable, added };
    Ok((chosen, sentences.plan(fleet, lexicon, strings, indexes)?))
}

/// Plans for a PCFG, whose strings are given; refuses sentences that the grammar cannot derive.
fn given(fleet: &dyn Map, input: &Input, sentences: Sentences, strings: &Lexicon) -> Result<(Chosen, Plan)> {
    let lexicon = Named::new(strings.clone());
    let indexes = index(fleet, sentences.tasks(&lexicon, &sentences.shards, &Work::Index))?;
    let of_shard =
        |(shard, index): (usize, &Index)| index.unparsable.iter().map(move |&item| (shard, item)).collect();
    let unparsable: Vec<Vec<(usize, u32)>> = indexes.iter().enumerate().map(of_shard).collect();
    refuse_unparsable(input, &unparsable.concat())?;
    let shards = sentences.shards.into_iter().zip(indexes);
    let shards = shards.map(|(shard, index)| PlannedShard { shard, params: index.params }).collect();
    let chosen = Chosen { lexicon: strings.clone(), underivable: 0, added: 0 };
    Ok((chosen, Plan { grammar: sentences.grammar, lexicon, treebank: None, shards }))
}

/// What chains over an adaptor grammar begin with, whose strings come from their tables: none. Refuses sentences that the grammar
/// cannot derive.
fn without_strings(fleet: &dyn Map, input: &Input, sentences: &Sentences) -> Result<Chosen> {
    let choice = Choice { truncation: 0, rho: 0.0, max_length: 1 };
    let count = Work::Candidates { max_length: choice.max_length };
    let tasks = |empty: &Named<Lexicon>| sentences.tasks(empty, &sentences.shards, &count);
    let lexicon = candidates(fleet, input, &choice, tasks)?;
    Ok(Chosen { lexicon, underivable: 0, added: 0 })
}

/// Plans with strings that were chosen before.
fn again(fleet: &dyn Map, sentences: Sentences, chosen: &Chosen) -> Result<Plan> {
    let lexicon = Named::new(chosen.lexicon.clone());
    let strings = string_shards(&sentences.grammar.value, &lexicon.value);
    let indexes = index(fleet, sentences.tasks(&lexicon, &strings, &Work::Index))?;
    sentences.plan(fleet, lexicon, strings, indexes)
}

/// The grammar and the shards of sentences, named by their content.
pub struct Sentences {
    /// The grammar.
    pub grammar: Named<Grammar>,
    /// The sentences.
    pub shards: Vec<Named<Shard>>,
}

impl Sentences {
    /// Those of a job.
    pub fn new(input: &Input) -> Sentences {
        let shards = input.shards.iter().map(|shard| Named::new(shard.shard.clone())).collect();
        Sentences { grammar: Named::new(input.grammar.clone()), shards }
    }

    fn tasks(&self, lexicon: &Named<Lexicon>, shards: &[Named<Shard>], work: &Work) -> Vec<Task> {
        let task = |shard: &Named<Shard>| Task {
            grammar: self.grammar.clone(),
            lexicon: lexicon.clone(),
            shard: shard.clone(),
            work: work.clone(),
        };
        shards.iter().map(task).collect()
    }

    /// Of the sentences alone, each shard having all parameters.
    pub fn for_chains(self, chosen: &Chosen) -> Plan {
        let n_params = chosen.lexicon.n_params(&self.grammar.value) as u32;
        let params: Vec<ParamId> = (0..n_params).map(ParamId).collect();
        let shards = self.shards.into_iter().map(|shard| PlannedShard { shard, params: params.clone() });
        let lexicon = Named::new(chosen.lexicon.clone());
        Plan { grammar: self.grammar, lexicon, treebank: None, shards: shards.collect() }
    }

    /// Of trees, which need no parameters named: each shard has those of the whole treebank.
    pub fn for_trees(self, treebank: Arc<Treebank>) -> Plan {
        let shards = self.shards.into_iter().map(|shard| PlannedShard { shard, params: Vec::new() });
        let lexicon = Named::new(Lexicon::default());
        Plan { grammar: self.grammar, lexicon, treebank: Some(treebank), shards: shards.collect() }
    }

    /// Of the sentences and `strings`, whose parameters are known already.
    fn plan(
        self,
        fleet: &dyn Map,
        lexicon: Named<Lexicon>,
        strings: Vec<Named<Shard>>,
        mut of_strings: Vec<Index>,
    ) -> Result<Plan> {
        let mut indexes = index(fleet, self.tasks(&lexicon, &self.shards, &Work::Index))?;
        indexes.append(&mut of_strings);
        let shards = self.shards.into_iter().chain(strings).zip(indexes);
        let shards = shards.map(|(shard, index)| PlannedShard { shard, params: index.params }).collect();
        Ok(Plan { grammar: self.grammar, lexicon, treebank: None, shards })
    }
}

/// Counts constituents and ranks their strings; refuses sentences that the grammar cannot derive.
fn candidates(
    fleet: &dyn Map,
    input: &Input,
    choice: &Choice,
    tasks: impl FnOnce(&Named<Lexicon>) -> Vec<Task>,
) -> Result<Lexicon> {
    let adapted: Vec<SymbolId> = input.grammar.adapted().collect();
    let empty = adapted.iter().map(|&symbol| StickStrings { symbol, strings: Strings::new() });
    let empty = Named::new(Lexicon { sticks: empty.collect() });
    let mut tally = Tally::default();
    let mut unparsable: Vec<(usize, u32)> = Vec::new();
    fleet.map(Stage::Candidates, tasks(&empty), &mut |shard, answer| {
        if let Answer::Candidates(candidates) = answer {
            tally.add(candidates.found);
            unparsable.extend(candidates.unparsable.into_iter().map(|item| (shard, item)));
        }
    })?;
    refuse_unparsable(input, &unparsable)?;
    Ok(Lexicon { sticks: tally.top(&adapted, choice.truncation, choice.rho) })
}

/// Names the first of the sentences without a derivation, given by shard and position in it.
fn refuse_unparsable(input: &Input, unparsable: &[(usize, u32)]) -> Result<()> {
    let Some(&(shard, item)) = unparsable.first() else { return Ok(()) };
    let others = match unparsable.len() {
        1 => String::new(),
        n => format!(" (and {} more sentences)", n - 1),
    };
    bail!(
        "{}: the grammar cannot derive this sentence{others}; add the rules that it lacks, or leave it out",
        input.describe(shard, item)
    );
}

fn missing(fleet: &dyn Map, tasks: Vec<Task>) -> Result<Vec<(SymbolId, Vec<SymbolId>)>> {
    let mut missing = Vec::new();
    fleet.map(Stage::Cover, tasks, &mut |_, answer| {
        if let Answer::Missing(strings) = answer {
            missing.extend(strings);
        }
    })?;
    missing.sort_unstable();
    missing.dedup();
    Ok(missing)
}

fn index(fleet: &dyn Map, tasks: Vec<Task>) -> Result<Vec<Index>> {
    let mut indexes = Vec::new();
    fleet.map(Stage::Index, tasks, &mut |_, answer| {
        if let Answer::Index(index) = answer {
            indexes.push(index);
        }
    })?;
    Ok(indexes)
}

/// Runs of stick strings, in parameter order: one ends with the string that brings it to the size of a shard.
fn string_shards(grammar: &Grammar, lexicon: &Lexicon) -> Vec<Named<Shard>> {
    let mut shards = Vec::new();
    for (number, stick) in lexicon.sticks.iter().enumerate() {
        let params = lexicon.params(grammar, number);
        let (mut start, mut n_symbols) = (params.start, 0);
        for (param, string) in params.clone().zip(&stick.strings) {
            n_symbols += string.len();
            if n_symbols >= DEFAULT_SHARD_SYMBOLS as usize {
                shards.push(Named::new(Shard::Strings(start..param + 1)));
                (start, n_symbols) = (param + 1, 0);
            }
        }
        if start < params.end {
            shards.push(Named::new(Shard::Strings(start..params.end)));
        }
    }
    shards
}

/// Parameters of the strings that have no derivation, ascending.
fn unparsable_strings(shards: &[Named<Shard>], indexes: &[Index]) -> Vec<u32> {
    let of_shard = |(shard, index): (&Named<Shard>, &Index)| match shard.value.as_ref() {
        Shard::Strings(params) => {
            let first = params.start;
            index.unparsable.iter().map(|item| first + item).collect()
        }
        Shard::Sentences(_) | Shard::Trees { .. } => Vec::new(),
    };
    shards.iter().zip(indexes).flat_map(of_shard).collect()
}

fn without(grammar: &Grammar, lexicon: &Lexicon, gone: &[u32]) -> Lexicon {
    let sticks = lexicon.sticks.iter().enumerate().map(|(number, stick)| {
        let kept = lexicon.params(grammar, number).zip(&stick.strings);
        let kept = kept.filter(|(param, _)| gone.binary_search(param).is_err());
        StickStrings { symbol: stick.symbol, strings: kept.map(|(_, string)| string).collect() }
    });
    Lexicon { sticks: sticks.collect() }
}
