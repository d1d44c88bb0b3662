//! Chooses the strings of the sticks by the bound.
//!
//! "Any set of strings will give a valid approximation" (§3.3 of the paper), so the set is chosen like any other
//! variational parameter: to raise the bound. A string costs log Z of its own grammaton, used or not; without it, every
//! item that uses it loses −ln(1 − posterior of the use), to first order. Where the cost is larger, the string is dropped,
//! the least used first and a share of the stick at most in one round, since strings stand in for one another.

use std::collections::BTreeSet;

use super::Params;
use crate::grammar::ParamId;
use crate::grammar::lexicon::Lexicon;
use crate::grammar::{Grammar, ParamSpace, StickId};

/// Statistics of every string in a round, `[n_params]` each.
pub struct Evidence<'a> {
    /// Expected uses.
    pub counts: &'a [f64],
    /// Loss of log Z of all items without the string; +∞ if some item needs it.
    pub losses: &'a [f64],
    /// log Z of the string's own grammaton.
    pub log_z: &'a [f64],
}

impl Params {
    /// Takes the strings out of use that do not pay for themselves, at most `share` of each stick; gives them. Strings of
    /// one symbol stay, so that sentences keep a parse.
    pub fn drop_strings(&mut self, table: &StringTable, evidence: &Evidence, share: f64) -> Vec<ParamId> {
        let mut dropped = Vec::new();
        for stick in &mut self.sticks {
            let at = |values: &[f64], param: ParamId| values[param.index()];
            let mut candidates: Vec<ParamId> = stick.order.clone();
            candidates.retain(|&param| {
                table.length(param) > 1 && at(evidence.losses, param) < -at(evidence.log_z, param)
            });
            candidates.sort_by(|&a, &b| at(evidence.counts, a).total_cmp(&at(evidence.counts, b)));
            candidates.truncate((share * stick.order.len() as f64).ceil() as usize);
            let gone: BTreeSet<ParamId> = candidates.into_iter().collect();
            stick.order.retain(|param| !gone.contains(param));
            dropped.extend(gone);
        }
        dropped
    }

    /// Takes `params` into use, at the end of their sticks; gives how many were not in use before.
    pub fn use_strings(&mut self, table: &StringTable, params: &[ParamId]) -> usize {
        let mut taken = 0;
        for (number, stick) in (0..).map(StickId).zip(&mut self.sticks) {
            let mut known: BTreeSet<ParamId> = stick.order.iter().copied().collect();
            let fresh =
                params.iter().filter(|&&param| table.stick(param) == Some(number) && known.insert(param));
            let before = stick.order.len();
            stick.order.extend(fresh);
            taken += stick.order.len() - before;
        }
        taken
    }

    /// All strings in use.
    pub fn in_use(&self) -> impl Iterator<Item = ParamId> + '_ {
        self.sticks.iter().flat_map(|stick| stick.order.iter().copied())
    }
}

/// Stick and length of every string, by parameter.
pub struct StringTable {
    space: ParamSpace,
    lengths: Vec<u32>,
}

impl StringTable {
    /// The table of the strings of `lexicon`.
    pub fn new(grammar: &Grammar, lexicon: &Lexicon) -> StringTable {
        let strings = lexicon.sticks.iter().flat_map(|stick| &stick.strings);
        StringTable {
            space: lexicon.space(grammar),
            lengths: strings.map(|string| string.len() as u32).collect(),
        }
    }

    /// The stick that the string `param` is on; `None` for parameters that are not of strings.
    pub fn stick(&self, param: ParamId) -> Option<StickId> {
        self.space.stick_of(param)
    }

    /// Symbols in the string `param`.
    pub fn length(&self, param: ParamId) -> u32 {
        self.lengths[(param.0 - self.space.first_string().0) as usize]
    }
}
