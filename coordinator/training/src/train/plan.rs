//! Plan of a job: grammar, strings and shards, which are the same in all rounds, and maps over the shards.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use fleet::{Map, MapReport, Stage, Tasks};
use grammaton::grammar::{Grammar, ParamId};
use grammaton::methods::{Basis, Data};
use grammaton::models::Model;
use grammaton::models::decode::{Decode, Decoded, Decoder};
use grammaton::num::Wide;
use grammaton::num::tree_sum::groups;
use grammaton::train::round::Ask;
use grammaton::train::trainer::{Failure, Read, Shards};
use grammaton::work::counts::union;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Language, Named, Task, WeightsInUse, Work};

use parking_lot::Mutex;

use super::spill::{SpillStore, Stored};
use scheduler::Needs;

/// Grammar or treebank, with its shards.
pub struct Plan {
    /// Grammar and strings, or treebank.
    pub basis: Basis,
    /// Shards of trees, or of sentences and then of strings.
    pub shards: Arc<PlannedShards>,
}

/// What is known of groups of shards, by the first shard and the one after the last.
type ByGroup<T> = Mutex<BTreeMap<(usize, usize), T>>;

/// All shards of a plan.
pub struct PlannedShards {
    /// Each of them.
    pub each: Vec<PlannedShard>,
    /// The parameters of groups of several shards.
    params: ByGroup<Stored<Vec<ParamId>>>,
    /// The number of parameters of groups that were asked.
    n_params: ByGroup<usize>,
    spill: Arc<SpillStore>,
}

impl PlannedShards {
    /// These shards, without groups.
    pub fn new(each: Vec<PlannedShard>, spill: Arc<SpillStore>) -> PlannedShards {
        PlannedShards { each, params: Mutex::default(), n_params: Mutex::default(), spill }
    }

    /// The parameters of a group, in the order of its weights and counts.
    fn params(&self, group: &Range<usize>) -> Result<Arc<Vec<ParamId>>> {
        let params = self.find_params(group)?;
        self.n_params.lock().insert((group.start, group.end), params.len());
        Ok(params)
    }

    fn find_params(&self, group: &Range<usize>) -> Result<Arc<Vec<ParamId>>> {
        let shards = &self.each[group.clone()];
        let first = &shards[0].params;
        if shards.iter().all(|shard| shard.params.hash == first.hash) {
            return first.value();
        }
        let key = (group.start, group.end);
        if let Some(known) = self.params.lock().get(&key) {
            return known.value();
        }
        let indexes = shards.iter().map(|shard| shard.params.value()).collect::<Result<Vec<_>>>()?;
        let stored = self.spill.keep(union(indexes.iter().map(|params| params.as_slice())))?;
        let params = stored.value()?;
        self.params.lock().insert(key, stored);
        Ok(params)
    }

    /// The number of parameters of some groups together, a parameter counted once for each of them; `None` if one of them was not asked before.
    fn n_touched<'a>(&self, groups: impl Iterator<Item = &'a Range<usize>>) -> Option<usize> {
        let known = self.n_params.lock();
        groups.map(|group| known.get(&(group.start, group.end)).copied()).sum()
    }
}

/// A shard and the parameters that it touches.
pub struct PlannedShard {
    /// The shard.
    pub shard: Stored<Shard>,
    /// Its parameters, in the order of its weights and counts.
    pub params: Stored<Vec<ParamId>>,
    /// Strings of the shard; `None` for sentences and trees.
    pub strings: Option<Range<u32>>,
}

impl Shards for Plan {
    fn len(&self) -> usize {
        self.shards.each.len()
    }

    fn params(&self, shard: usize) -> Read<Arc<Vec<ParamId>>> {
        Ok(self.shards.each[shard].params.value()?)
    }

    fn params_of_group(&self, group: &Range<usize>) -> Read<Arc<Vec<ParamId>>> {
        Ok(self.shards.params(group)?)
    }

    fn strings(&self, shard: usize) -> Option<Range<u32>> {
        self.shards.each[shard].strings.clone()
    }
}

impl Data for Plan {
    fn basis(&self) -> &Basis {
        &self.basis
    }

    fn shard(&self, shard: usize) -> Read<Arc<Shard>> {
        Ok(self.shards.each[shard].shard.value()?)
    }
}

/// The same work on several shards.
pub struct OnShards {
    /// The grammar and the strings.
    pub language: Language,
    /// The shards.
    pub shards: Vec<Stored<Shard>>,
    /// The work.
    pub work: Work,
}

impl Tasks for OnShards {
    fn len(&self) -> usize {
        self.shards.len()
    }

    fn needs(&self, at: usize) -> Needs {
        Needs::shard(self.shards[at].hash)
    }

    fn make(&self, at: usize) -> Result<Task> {
        let shard = self.shards[at].named()?;
        Ok(Task {
            language: Some(self.language.clone()),
            shard,
            work: self.work.clone(),
            further: Vec::new(),
        })
    }
}

/// One round of several runs.
struct Round {
    /// Questions by run.
    asks: Vec<AskOf>,
    /// By task: the run, and the shards that are asked at once.
    asked: Vec<(usize, Range<usize>)>,
    /// By task: the time that it takes, zero if that is not known.
    takes: Vec<Duration>,
}

/// The questions of a run to the shards of its plan.
struct AskOf {
    language: Option<Language>,
    shards: Arc<PlannedShards>,
    ask: Ask,
    /// The weights of all parameters, if its tasks share them.
    shared: Option<Named<WeightsInUse>>,
}

/// The tasks of a round of some runs: what each of them asks the shards of its plan, and by task the number of the ask and the
/// group of shards that are asked, and the time that this takes, zero if that is not known. So many remote members are likely to compute
/// them.
pub fn round(
    asks: Vec<(&Plan, Ask)>,
    asked: Vec<(usize, Range<usize>)>,
    takes: Vec<Duration>,
    n_remote: usize,
) -> impl Tasks + use<> {
    let of = |(at, (plan, ask)): (usize, (&Plan, Ask))| {
        let language = match &plan.basis {
            Basis::Language(language) => Some(language.clone()),
            Basis::Treebank(_) => None,
        };
        let shards = plan.shards.clone();
        let groups = asked.iter().filter(|(of, _)| *of == at).map(|(_, group)| group);
        let shared = shared_weights(&ask, shards.n_touched(groups), n_remote);
        AskOf { language, shards, ask, shared }
    };
    Round { asks: asks.into_iter().enumerate().map(of).collect(), asked, takes }
}

/// The weights of all parameters, if sending them once to every remote member takes fewer bytes than sending each task what it touches.
fn shared_weights(ask: &Ask, n_touched: Option<usize>, n_remote: usize) -> Option<Named<WeightsInUse>> {
    let Ask::Expect { weights, .. } = ask else { return None };
    let pays = n_remote > 0 && n_touched? > n_remote * weights.len();
    pays.then(|| Named::new(weights.iter().copied().collect()))
}

impl Tasks for Round {
    fn len(&self) -> usize {
        self.asked.len()
    }

    fn needs(&self, at: usize) -> Needs {
        let (run, group) = &self.asked[at];
        let (AskOf { shards, ask, .. }, shard) = (&self.asks[*run], group.start);
        let shard_state = match ask {
            Ask::Each(works) => works[&shard].shard_state().map(|shard_state| shard_state.hash),
            Ask::Expect { .. } | Ask::Sample { .. } | Ask::Same(_) => None,
        };
        // A group is where it was computed before. Where its first shard was says little of the others.
        let shard = match &shards.each[group.clone()] {
            [alone] => alone.shard.hash,
            several => Named::new(several.iter().map(|planned| planned.shard.hash).collect::<Vec<_>>()).hash,
        };
        Needs { shard, shard_state, takes: self.takes[at] }
    }

    fn make(&self, at: usize) -> Result<Task> {
        let (run, group) = &self.asked[at];
        let AskOf { language, shards, ask, shared } = &self.asks[*run];
        let work = ask.work(group.start, &shards.params(group)?, shared.as_ref());
        let mut named = shards.each[group.clone()].iter().map(|planned| planned.shard.named());
        let shard = named.next().ok_or_else(|| anyhow!("a group has at least one shard"))??;
        Ok(Task { language: language.clone(), shard, further: named.collect::<Result<_>>()?, work })
    }
}

/// [`Map::map`] for answers that may be refused.
pub fn map(
    fleet: &dyn Map,
    stage: Stage,
    tasks: impl Tasks + 'static,
    mut each: impl FnMut(usize, Answer) -> Result<()>,
) -> Result<MapReport> {
    if tasks.is_empty() {
        return Ok(MapReport::default());
    }
    let mut refused = None;
    let report = fleet.map(stage, Arc::new(tasks), &mut |at, answer| {
        if refused.is_none() {
            refused = each(at, answer).err();
        }
    })?;
    refused.map_or(Ok(report), Err)
}

impl Plan {
    /// The grammar and the strings. An error says that the plan is of trees.
    pub fn language(&self) -> Result<&Language> {
        Ok(self.basis.language()?)
    }

    /// The shards of sentences or trees.
    pub fn sentence_shards(&self) -> impl Iterator<Item = &PlannedShard> {
        self.shards.each.iter().filter(|shard| shard.strings.is_none())
    }

    /// Divides these shards into groups of at most a level, none of which has sentences and strings ([`groups`]).
    pub fn groups(&self, shards: &[usize], level: u32) -> Vec<Range<usize>> {
        let border = shards.partition_point(|&shard| self.strings(shard).is_none());
        let (sentences, strings) = shards.split_at(border);
        [groups(sentences, level), groups(strings, level)].concat()
    }

    /// Shards, by number.
    pub fn shards(&self, numbers: Range<usize>) -> Vec<Stored<Shard>> {
        self.shards.each[numbers].iter().map(|shard| shard.shard.clone()).collect()
    }

    /// `model`, to find the best analyses of sentences by these decoders; with `trees`, and with the probabilities of segments (`spans`), if these are asked for.
    pub fn parser(&self, model: &Model, decoders: &[Decoder], trees: bool, spans: bool) -> Result<Parser> {
        self.parser_with(
            model,
            Decode {
                weights: model.decoding_weights(),
                segments: model.segments.clone(),
                decoders: decoders.to_vec(),
                trees,
                spans,
                open: false,
            },
        )
    }

    /// The total weight of the derivations of sentences, under weights of all parameters.
    pub fn mass(&self, weights: &[Wide]) -> Result<Parser> {
        let language = self.language()?.clone();
        let n_escapes =
            language.lexicon.value.space(&language.grammar.value).n_with_escapes() - weights.len();
        let weights = [weights, &vec![Wide::ZERO; n_escapes]].concat();
        let (segments, decoders) = (Vec::new(), Vec::new());
        let with = Decode { weights, segments, decoders, trees: false, spans: false, open: false };
        Ok(Parser { language, with: Named::new(with) })
    }

    /// `model`, to find what `with` asks for.
    pub fn parser_with(&self, model: &Model, with: Decode) -> Result<Parser> {
        let mut language = self.language()?.clone();
        if model.lexicon != *language.lexicon.value {
            language.lexicon = Named::new(model.lexicon.clone()); // it comes from samples
        }
        Ok(Parser { language, with: Named::new(with) })
    }
}

/// A model that reads sentences.
pub struct Parser {
    language: Language,
    with: Named<Decode>,
}

impl Parser {
    /// The same without factors of arcs.
    pub fn without_factors(self) -> Parser {
        let Parser { mut language, with } = self;
        if language.grammar.value.factors.is_some() {
            language.grammar = Named::new(Grammar { factors: None, ..(*language.grammar.value).clone() });
        }
        Parser { language, with }
    }

    /// Parses the distinct sentences of these shards; results by shard.
    pub fn parse(
        &self,
        fleet: &dyn Map,
        stage: Stage,
        shards: Vec<Stored<Shard>>,
    ) -> Result<Vec<Vec<Decoded>>> {
        let tasks =
            OnShards { language: self.language.clone(), shards, work: Work::Decode(self.with.clone()) };
        let n_decoders = self.with.value.decoders.len();
        let mut decoded = Vec::new();
        map(fleet, stage, tasks, |shard, answer| {
            let is_read = |decoded: &Decoded| decoded.segmentations.len() == n_decoders;
            match answer {
                Answer::Decoded(sentences) if sentences.iter().all(is_read) => decoded.push(sentences),
                _ => return Err(Failure::WrongAnswer { shard }.into()),
            }
            Ok(())
        })?;
        Ok(decoded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: weights are shared only where that is fewer of them, and never before it is known what tasks touch, nor within one process.
    #[test]
    fn weights_are_shared_where_that_is_fewer() {
        let ask = Ask::Expect { weights: Arc::new(vec![Wide::ONE; 10]), losses: false };
        let shares = |n_touched, n_remote| shared_weights(&ask, n_touched, n_remote).is_some();
        assert!(shares(Some(21), 2) && !shares(Some(20), 2) && !shares(Some(21), 3));
        assert!(!shares(None, 2) && !shares(Some(1000), 0));
        assert!(shared_weights(&Ask::Same(Work::Index), Some(1000), 1).is_none());
    }
}
