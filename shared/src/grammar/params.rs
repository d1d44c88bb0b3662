//! Parameters by number: the constant one, then the rules, then the strings, stick by stick. Weights for sentences that were not
//! trained on go on with an escape for each stick.
//!
//! No other file knows where one kind ends and the next begins.
//!
//! ```
//! use grammaton::grammar::lexicon::{Lexicon, StickStrings};
//! use grammaton::grammar::{ParamId, RuleId, StickId, syntax};
//!
//! // Two rules of S, one of W, which is adapted and has two strings.
//! let (grammar, _) = syntax::parse("1 1 S --> W\n1 1 S --> W S\nW --> a\n", "grammar").unwrap();
//! let [word, a] = ["W", "a"].map(|name| grammar.symbol(name).unwrap());
//! let strings = [vec![a], vec![a, a]].iter().collect();
//! let lexicon = Lexicon { sticks: vec![StickStrings { symbol: word, strings }] };
//!
//! let space = lexicon.space(&grammar);
//! assert_eq!((space.rules(), space.strings()), (1..4, 4..6));
//! assert_eq!(space.rule(ParamId(3)), Some(RuleId(2)));
//! assert_eq!(space.stick_of(ParamId(5)), Some(StickId(0)));
//! assert_eq!((space.n_params(), space.escape(StickId(0))), (6, ParamId(6)));
//! ```

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

/// Index into [`Grammar::rules`](super::Grammar::rules).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RuleId(pub u32);

impl RuleId {
    /// The rule at that index.
    pub fn at(index: usize) -> RuleId {
        RuleId(index as u32)
    }

    /// Returns the id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index into [`Lexicon::sticks`](super::lexicon::Lexicon::sticks).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StickId(pub u32);

impl StickId {
    /// Returns the id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a parameter of a [`ParamSpace`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Pod, Zeroable)]
#[repr(transparent)]
pub struct ParamId(pub u32);

/// The parameter of the first rule.
const FIRST_RULE: u32 = 1;

impl ParamId {
    /// The weight that is always one.
    pub const ONE: ParamId = ParamId(0);

    /// Returns the id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The parameter of a rule.
    pub fn of_rule(rule: RuleId) -> ParamId {
        ParamId(FIRST_RULE + rule.0)
    }
}

/// Layout of the parameters of a grammar and its strings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamSpace {
    first_string: u32,
    /// `[n_sticks]`: one past the last string of the stick.
    ends: Vec<u32>,
}

impl ParamSpace {
    /// The parameters of so many rules, and of sticks of so many strings.
    pub(super) fn new(n_rules: usize, n_strings: impl IntoIterator<Item = usize>) -> ParamSpace {
        let first_string = FIRST_RULE + n_rules as u32;
        let ends = n_strings.into_iter().scan(first_string, |end, n| {
            *end += n as u32;
            Some(*end)
        });
        ParamSpace { first_string, ends: ends.collect() }
    }

    /// The parameters of the rules, as indexes.
    pub fn rules(&self) -> Range<usize> {
        FIRST_RULE as usize..self.first_string as usize
    }

    /// The rule that a parameter is of, if it is one of a rule.
    pub fn rule(&self, param: ParamId) -> Option<RuleId> {
        self.rules().contains(&param.index()).then(|| RuleId(param.0 - FIRST_RULE))
    }

    /// The parameter of the first string, if there is one.
    pub fn first_string(&self) -> ParamId {
        ParamId(self.first_string)
    }

    /// The parameters of all strings.
    pub fn strings(&self) -> Range<u32> {
        self.first_string..self.n_params() as u32
    }

    /// The parameters of the strings of a stick.
    pub fn stick(&self, stick: StickId) -> Range<u32> {
        let before = stick.index().checked_sub(1).map_or(self.first_string, |before| self.ends[before]);
        before..self.ends[stick.index()]
    }

    /// The parameters of the strings of each stick, in symbol order.
    pub fn sticks(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        (0..self.ends.len() as u32).map(|stick| self.stick(StickId(stick)))
    }

    /// The stick that a parameter's string is on, if it is one of a string.
    #[inline]
    pub fn stick_of(&self, param: ParamId) -> Option<StickId> {
        self.strings()
            .contains(&param.0)
            .then(|| StickId(self.ends.partition_point(|&end| end <= param.0) as u32))
    }

    /// The number of parameters: the constant one, the rules and the strings.
    pub fn n_params(&self) -> usize {
        self.ends.last().copied().unwrap_or(self.first_string) as usize
    }

    /// The parameter of new strings of a stick, in weights for sentences that were not trained on.
    pub fn escape(&self, stick: StickId) -> ParamId {
        ParamId(self.n_params() as u32 + stick.0)
    }

    /// The stick that a parameter is the escape of, if it is one.
    pub fn escape_of(&self, param: ParamId) -> Option<StickId> {
        param.0.checked_sub(self.n_params() as u32).map(StickId)
    }

    /// The number of parameters with the escapes.
    pub fn n_with_escapes(&self) -> usize {
        self.n_params() + self.ends.len()
    }
}
