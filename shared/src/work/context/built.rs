//! A shard with the forests of its items.
//!
//! The forests are folded ([`Chains`]): their edges hold chains, and chains hold positions in the shard's index. Sentences
//! under a dense grammar have no forests: they are computed anew every time ([`Dense`]).

pub(super) mod spill;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::data::{Sentence, TreeMarks};
use crate::forest::Prepared;
use crate::forest::TooAmbiguous;
use crate::forest::binary::{Adapted, Kind};
use crate::forest::build::Builder;
use crate::forest::chains::Chains;
use crate::forest::dense::{Dense, Expected};
use crate::forest::inside::{Counts, Scratch, Weights, expect, real};
use crate::forest::{Forest, best};
use crate::grammar::ParamId;
use crate::grammar::SymbolId;
use crate::models::dmv::constraint::Constraints;
use crate::models::dmv::factors::Factors;
use crate::num::Wide;
use crate::stop::{self, Meter, checked};
use crate::work::counts::{Expectation, Index};
use crate::work::error::ComputeError;
use crate::work::shard::Shard;

/// Forests by item.
pub struct BuiltShard {
    pub index: Index,
    /// Dense form in place of items, if the grammar is dense.
    dense: Option<Dense>,
    pub items: Vec<Item>,
    pub chains: Chains,
    /// The forests without strings that went out of use, once there are enough of these.
    compact: Mutex<Option<Arc<Compact>>>,
    /// Position in the index of the first string parameter.
    first_string: u32,
    is_strings: bool,
}

pub struct Item {
    pub forest: Option<Forest>,
    /// The forests of components, if they were asked for and there is any.
    pub restricted: Vec<Option<Forest>>,
    pub multiplicity: f64,
    /// Position in the index of the string that the item is; `None` for sentences.
    own: Option<u32>,
}

/// A shard whose forests are being built; parameters are numbered as in the whole model until all forests are built.
struct Building<'a> {
    builder: Builder<'a>,
    constraints: Option<&'a Constraints>,
    factors: Option<Factors<'a>>,
    first_string: u32,
    chains: Chains,
    items: Vec<Item>,
}

/// Forests restricted to some of the parameters.
struct Compact {
    /// By chain, whether it is in use.
    alive: Vec<bool>,
    n_alive: usize,
    /// `None` where no derivation is left.
    forests: Vec<Option<Forest>>,
}

impl BuiltShard {
    pub fn new(prepared: &Prepared, shard: Arc<Shard>) -> Result<BuiltShard, TooAmbiguous> {
        // It trains without forests, and decoders need them.
        let has_forest = |sentence: &Sentence| prepared.binary.check_dense(sentence.tokens.len()).is_ok();
        if let Shard::Sentences(sentences) = shard.as_ref()
            && prepared.grammar.factors.is_none()
            && sentences.iter().all(|sentence| sentence.marks.is_empty())
            && Dense::fits(&prepared.binary)
            && sentences.iter().all(has_forest)
        {
            return Ok(BuiltShard::dense(Dense::new(&prepared.binary, sentences)));
        }
        BuiltShard::folded(prepared, shard, &[], None)
    }

    /// Returns the shard with forests, built if it has none.
    pub fn with_forests(&self, prepared: &Prepared, shard: Arc<Shard>) -> Result<BuiltShard, TooAmbiguous> {
        BuiltShard::folded(prepared, shard, &self.index.params, None)
    }

    /// Builds a shard with forests, also of every component.
    pub fn constrained(
        prepared: &Prepared,
        shard: Arc<Shard>,
        constraints: &Constraints,
    ) -> Result<BuiltShard, TooAmbiguous> {
        BuiltShard::folded(prepared, shard, &[], Some(constraints))
    }

    /// With forests, and an index that has these parameters and those of the forests.
    fn folded(
        prepared: &Prepared,
        shard: Arc<Shard>,
        params: &[ParamId],
        constraints: Option<&Constraints>,
    ) -> Result<BuiltShard, TooAmbiguous> {
        let mut building = Building {
            builder: Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings),
            constraints,
            factors: match shard.as_ref() {
                Shard::Sentences(sentences) => Factors::of_sentences(&prepared.grammar, sentences),
                Shard::Strings(_) | Shard::Trees { .. } => None,
            },
            first_string: prepared.grammar.space().first_string().0,
            chains: Chains::default(),
            items: Vec::with_capacity(shard.len()),
        };
        match shard.as_ref() {
            Shard::Sentences(sentences) => {
                for Sentence { tokens, multiplicity, marks } in sentences {
                    building.add(0, tokens, marks, f64::from(*multiplicity), None)?;
                }
            }
            Shard::Strings(params) => {
                for param in checked(params.clone()) {
                    let (symbol, string) = prepared
                        .lexicon
                        .string(&prepared.grammar, ParamId(param))
                        .expect("the engine checked that the lexicon has these strings");
                    let Kind::Adapted(stick) = prepared.binary.kinds[symbol.index()] else {
                        unreachable!("the lexicon has strings of adapted nonterminals")
                    };
                    let base = prepared.binary.base[stick.index()];
                    building.add(base, string, &TreeMarks::default(), 1.0, Some(param))?;
                }
            }
            Shard::Trees { .. } => unreachable!("the engine reads trees without forests"),
        }
        let Building { mut chains, mut items, first_string, .. } = building;
        // Other forests come behind all of these, so that what is restricted changes no sum over chains.
        for forest in items.iter_mut().flat_map(|item| &mut item.restricted).flatten() {
            *forest = chains.fold(forest, first_string);
        }
        let own = items.iter().filter_map(|item| item.own).map(ParamId);
        let mut touched: Vec<ParamId> = chains.all_params().map(ParamId).chain(own).collect();
        touched.extend(params.iter().copied().chain([ParamId::ONE]));
        stop::sort(&mut touched);
        touched.dedup();
        let params = touched;
        let position = |param| params.binary_search(&ParamId(param)).expect("it was collected above") as u32;
        chains.renumber(position);
        chains.close();
        items.iter_mut().for_each(|item| item.own = item.own.map(position));
        let unparsable = items.iter().zip(0..).filter(|(item, _)| item.forest.is_none());
        let unparsable = unparsable.map(|(_, at)| at).collect();
        let first_string = params.partition_point(|param| param.0 < first_string) as u32;
        let is_strings = matches!(shard.as_ref(), Shard::Strings(_));
        Ok(BuiltShard {
            index: Index { params, unparsable },
            dense: None,
            items,
            chains,
            compact: Mutex::new(None),
            first_string,
            is_strings,
        })
    }

    fn dense(dense: Dense) -> BuiltShard {
        let params = dense.params().to_vec();
        let unparsable = (0..).zip(dense.parsable()).filter(|(_, parsable)| !parsable).map(|(item, _)| item);
        BuiltShard {
            index: Index { unparsable: unparsable.collect(), params },
            dense: Some(dense),
            items: Vec::new(),
            chains: Chains::default(),
            compact: Mutex::new(None),
            first_string: 0,
            is_strings: false,
        }
    }

    /// Whether it has no forests.
    pub fn is_dense(&self) -> bool {
        self.dense.is_some()
    }

    /// Bytes held, with a compact copy as large as it can be.
    pub fn size(&self) -> usize {
        self.dense.as_ref().map_or(0, Dense::size)
            + self.items.iter().flat_map(Item::forests).map(Forest::size).sum::<usize>() / 4 * 7
            + self.chains.size()
            + 4 * self.index.params.len()
    }

    /// Inside–outside over all items in use. It pays to `compact` the forests of a shard that stays.
    pub fn expect(
        &self,
        weights: &[Wide],
        with_losses: bool,
        compact: bool,
    ) -> Result<Expectation, ComputeError> {
        let n = self.index.params.len();
        if weights.len() != n {
            return Err(ComputeError::Weights { found: weights.len(), expected: n });
        }
        let in_use = |numbers: Vec<f64>| {
            let numbers = numbers.into_iter().zip(weights).filter(|(_, weight)| !weight.is_zero());
            numbers.map(|(number, _)| number).collect()
        };
        if let Some(dense) = &self.dense {
            let answer = self.expect_dense(dense, weights, with_losses);
            return Ok(Expectation {
                counts: in_use(answer.counts),
                losses: in_use(answer.losses),
                ..answer
            });
        }
        let chain_weights = self.chains.weights(weights);
        let compact = if compact { self.compact(&chain_weights) } else { None };
        let real = real(&chain_weights);
        let chain_weights = Weights { wide: &chain_weights, real: &real };
        let n_chains = self.chains.len();
        let mut uses = vec![0.0; n_chains];
        let mut losses = vec![0.0; if with_losses { n_chains } else { 0 }];
        let mut scratch = Scratch::default();
        let mut answer = Expectation::default();
        let mut missing = BTreeSet::new();
        let mut meter = Meter::default();
        for (at, item) in self.items.iter().enumerate() {
            let mut log_z = 0.0;
            if item.own.is_none_or(|own| !weights[own as usize].is_zero()) {
                let forest = match &compact {
                    Some(compact) => compact.forests[at].as_ref(),
                    None => item.forest.as_ref(),
                };
                meter.add(1 + forest.map_or(0, |forest| forest.edges.len()));
                let mut counts = Counts { uses: &mut uses, losses: &mut losses };
                let z = forest.map_or(Wide::ZERO, |forest| {
                    expect(forest, &chain_weights, item.multiplicity, &mut counts, &mut scratch)
                });
                if z.is_zero() {
                    let needs = item.needs(&self.chains, weights);
                    missing.extend(needs.into_iter().map(|param| self.index.params[param as usize]));
                } else {
                    log_z = z.ln();
                }
            }
            answer.log_z += item.multiplicity * log_z;
            if self.is_strings {
                answer.log_z_items.push(log_z);
            }
        }
        let mut counts = vec![0.0; n];
        self.chains.distribute(&uses, &mut counts);
        answer.counts = in_use(counts);
        if with_losses {
            let mut by_param = vec![0.0; n];
            self.chains.distribute(&losses, &mut by_param);
            by_param[..self.first_string as usize].fill(0.0);
            answer.losses = in_use(by_param);
        }
        answer.missing = missing.into_iter().collect();
        Ok(answer)
    }

    fn expect_dense(&self, dense: &Dense, weights: &[Wide], with_losses: bool) -> Expectation {
        let Expected { counts, totals } = dense.expect(weights);
        let mut answer = Expectation { counts, ..Expectation::default() };
        if with_losses {
            answer.losses = vec![0.0; weights.len()]; // there are no strings
        }
        let mut lost = false;
        for (item, (multiplicity, total)) in (0..).zip(dense.multiplicities().zip(&totals)) {
            if !total.is_zero() {
                answer.log_z += multiplicity * total.ln();
            } else {
                lost |= self.index.unparsable.binary_search(&item).is_err();
            }
        }
        if lost {
            // Which of those out of use a sentence needs is not known without its forest.
            let params = self.index.params.iter().zip(weights);
            answer.missing = params.filter(|(_, weight)| weight.is_zero()).map(|(&param, _)| param).collect();
        }
        answer
    }

    /// Forests without the chains of weight zero, if enough of them are; never changes an answer, since all that
    /// is left out has weight zero.
    fn compact(&self, weights: &[Wide]) -> Option<Arc<Compact>> {
        let n_alive = weights.iter().filter(|weight| !weight.is_zero()).count();
        let fits = |compact: &Arc<Compact>| {
            weights.iter().zip(&compact.alive).all(|(weight, &alive)| alive || weight.is_zero())
        };
        let mut kept = self.compact.lock().take().filter(fits);
        let before = kept.as_ref().map_or(weights.len(), |compact| compact.n_alive);
        if n_alive * 4 < before * 3 {
            let alive: Vec<bool> = weights.iter().map(|weight| !weight.is_zero()).collect();
            let pruned = |forest: &Forest| {
                stop::check();
                forest.pruned(|chain| alive[chain as usize])
            };
            let forests = self.items.iter().map(|item| item.forest.as_ref().and_then(pruned));
            let forests = forests.collect();
            kept = Some(Arc::new(Compact { alive, n_alive, forests }));
        }
        self.compact.lock().clone_from(&kept);
        kept
    }
}

impl Building<'_> {
    /// Adds an item with its forest, folded, and those of components, which are yet to be.
    fn add(
        &mut self,
        root: u32,
        tokens: &[SymbolId],
        marks: &TreeMarks,
        multiplicity: f64,
        own: Option<u32>,
    ) -> Result<(), TooAmbiguous> {
        let forest = TooAmbiguous::or_none(self.builder.build_within(root, tokens, &marks.brackets))?;
        let agreeing = match (&self.factors, forest) {
            (Some(factors), Some(forest)) => factors.restrict(forest, marks).map(Cow::Owned),
            (_, forest) => forest.map(Cow::Borrowed),
        };
        // Folded edges no longer say which arcs they make.
        let mut restricted = match (&agreeing, self.constraints) {
            (Some(forest), Some(constraints)) => constraints.restrict(forest, tokens),
            _ => Vec::new(),
        };
        let agreeing = match (&self.factors, agreeing) {
            (Some(factors), Some(forest)) => {
                for forest in restricted.iter_mut().flatten() {
                    *forest = factors.apply(forest, tokens, marks, &mut self.chains.slots);
                }
                Some(Cow::Owned(factors.apply(&forest, tokens, marks, &mut self.chains.slots)))
            }
            (_, forest) => forest,
        };
        let forest = agreeing.map(|forest| self.chains.fold(&forest, self.first_string));
        self.items.push(Item { forest, restricted, multiplicity, own });
        Ok(())
    }
}

impl Item {
    fn forests(&self) -> impl Iterator<Item = &Forest> {
        self.forest.iter().chain(self.restricted.iter().flatten())
    }

    /// Positions of the fewest strings of weight zero that would give the item a derivation.
    pub fn needs(&self, chains: &Chains, weights: &[Wide]) -> Vec<u32> {
        let Some(forest) = &self.forest else { return Vec::new() };
        let out_of_use = |chain: u32| {
            chains.params(chain).iter().copied().filter(|&param| weights[param as usize].is_zero())
        };
        let cheapest = best::min_cost(forest, |_, edge| out_of_use(edge.param).count() as f64, |_| false);
        cheapest.edges(forest).into_iter().flat_map(|(_, edge)| out_of_use(edge.param)).collect()
    }
}
