//! Checks of values against the grammar and the shard of their task.

use grammaton::grammar::tree::Tree;
use grammaton::grammar::{Grammar, ParamId, SymbolId};
use grammaton::models::dmv::nouns;
use grammaton::models::pcfg::trees::Derivations;
use grammaton::work::shard::Shard;

use super::items::{Items, sentences};
use super::sizes::{item_lengths, n_nodes, of_occurrences, sum};
use super::{Invalid, ascending, in_range, numbers};

pub fn at_most(field: &'static str, found: u64, expected: u64) -> Result<(), Invalid> {
    if found <= expected { Ok(()) } else { Err(Invalid::Excess { field, found, expected }) }
}

pub fn adapted(field: &'static str, at: usize, grammar: &Grammar, symbol: SymbolId) -> Result<(), Invalid> {
    if grammar.is_adapted(symbol) {
        return Ok(());
    }
    let (found, end) = (i64::from(symbol.0), u64::from(grammar.n_nonterminals));
    Err(Invalid::Range { field, at, found, start: 0, end })
}

pub fn nonterminals<'a>(
    field: &'static str,
    grammar: &Grammar,
    symbols: impl IntoIterator<Item = &'a SymbolId>,
) -> Result<(), Invalid> {
    let nonterminals = 0..u64::from(grammar.n_nonterminals);
    in_range(field, symbols.into_iter().map(|symbol| symbol.0), nonterminals)
}

pub fn terminals<'a>(
    field: &'static str,
    grammar: &Grammar,
    symbols: impl IntoIterator<Item = &'a SymbolId>,
) -> Result<(), Invalid> {
    let terminals = u64::from(grammar.n_nonterminals)..grammar.symbols.len() as u64;
    in_range(field, symbols.into_iter().map(|symbol| symbol.0), terminals)
}

/// Checks that no string is empty.
pub fn nonempty<'a>(
    field: &'static str,
    mut strings: impl Iterator<Item = &'a [SymbolId]>,
) -> Result<(), Invalid> {
    match strings.position(<[SymbolId]>::is_empty) {
        None => Ok(()),
        Some(at) => Err(Invalid::Empty { field, at }),
    }
}

/// Checks that segments are not empty, and that the last one ends where the sentence ends.
pub fn whole<'a>(
    field: &'static str,
    ends: impl IntoIterator<Item = &'a Vec<u32>>,
    length: usize,
) -> Result<(), Invalid> {
    let length = length as u64;
    for ends in ends {
        in_range(field, ends.last().or(Some(&0)).copied(), length..length + 1)?;
        in_range(field, ends.first().copied(), 1..length + 1)?;
        ascending(field, ends)?;
    }
    Ok(())
}

/// Checks that strings occur in the sentences of the shard: the first span in order that is not before a string begins with it. Spans are as
/// long as the longest string.
pub fn substrings<'a>(
    field: &'static str,
    shard: &Shard,
    strings: impl Iterator<Item = &'a [SymbolId]> + Clone,
) -> Result<(), Invalid> {
    let longest = strings.clone().map(<[SymbolId]>::len).max().unwrap_or(0);
    let mut spans: Vec<&[SymbolId]> = Vec::new();
    for sentence in sentences(shard) {
        let tokens = &sentence.tokens;
        spans.extend((0..tokens.len()).map(|at| &tokens[at..tokens.len().min(at.saturating_add(longest))]));
    }
    spans.sort_unstable();
    spans.dedup();
    let occurs = |string: &[SymbolId]| {
        let first = spans.partition_point(|span| *span < string);
        spans.get(first).is_some_and(|span| span.starts_with(string))
    };
    match strings.into_iter().position(|string| !occurs(string)) {
        None => Ok(()),
        Some(at) => Err(Invalid::Foreign { field, at }),
    }
}

/// Checks that parameters can have weight zero in a task with so many of these. Which do, the shard's index tells, which the trainer has.
pub fn missing(
    field: &'static str,
    task: &Items<'_>,
    n_zero: u64,
    params: &[ParamId],
) -> Result<(), Invalid> {
    at_most(field, params.len() as u64, n_zero)?;
    ascending(field, params)?;
    // The constant parameter is never missing.
    in_range(field, params.iter().map(|param| param.0), 1..task.lexicon.space(task.grammar).n_params() as u64)
}

/// Checks that no parameter has more uses than derivations of the items can have nodes.
pub fn uses(field: &'static str, task: &Items<'_>, counts: &[f64]) -> Result<(), Invalid> {
    // Binary nodes of long rules, and the rounding of sums, are within a factor of two.
    let most = 2.0 * sum(task.each().map(|shard| most_nodes(&shard))) as f64;
    numbers(field, counts, "that is not negative, and at most the uses that its shards can have", |count| {
        (0.0..=most).contains(&count)
    })
}

/// Trees of sentences under a grammar with strings.
pub struct Trees<'t> {
    grammar: &'t Grammar,
    derivations: Derivations<'t>,
}

impl<'t> Trees<'t> {
    pub fn new(task: &Items<'t>) -> Trees<'t> {
        Trees { grammar: task.grammar, derivations: Derivations::open(task.grammar, task.lexicon) }
    }

    /// Reads a tree, which has to derive `tokens`; also returns its number of inner nodes.
    pub fn read(&self, text: &str, tokens: &[SymbolId]) -> Result<(Tree, u64), Invalid> {
        let tree = self.over(text, tokens)?;
        let mut n_nodes = 0;
        self.derivations.each(&tree, |_| n_nodes += 1).map_err(wrong)?;
        Ok((tree, n_nodes))
    }

    /// Reads a tree of dependencies over `tokens`, whose rules need not be those of the grammar.
    pub fn read_dependencies(&self, text: &str, tokens: &[SymbolId]) -> Result<Tree, Invalid> {
        let tree = self.over(text, tokens)?;
        nouns::heads(&tree).map_err(wrong)?;
        Ok(tree)
    }

    /// Reads a tree in which the start symbol has `tokens` for children: that of a sentence without a derivation.
    pub fn read_flat(&self, text: &str, tokens: &[SymbolId]) -> Result<Tree, Invalid> {
        let tree = self.over(text, tokens)?;
        if tree.nodes()[0].label == self.grammar.name(Grammar::START)
            && tree.nodes().len() == tokens.len() + 1
        {
            Ok(tree)
        } else {
            Err(wrong("a tree of a sentence without a derivation is not flat"))
        }
    }

    fn over(&self, text: &str, tokens: &[SymbolId]) -> Result<Tree, Invalid> {
        let tree = Tree::parse(text).map_err(wrong)?;
        let names = tokens.iter().map(|&token| self.grammar.name(token));
        if tree.terminals().eq(names) { Ok(tree) } else { Err(wrong("a tree is of another sentence")) }
    }
}

/// Checks that `ends` are the ends of the segments of `tree`.
pub fn segments(
    field: &'static str,
    grammar: &Grammar,
    segments: &[SymbolId],
    tree: &Tree,
    ends: &[u32],
) -> Result<(), Invalid> {
    let is_segment = |label: &str| segments.iter().any(|&symbol| grammar.name(symbol) == label);
    if tree.segment_ends(is_segment) == ends { Ok(()) } else { Err(Invalid::Inconsistent { field }) }
}

fn wrong(problem: impl ToString) -> Invalid {
    Invalid::Trees { problem: problem.to_string() }
}

/// Upper bound on the nodes of derivations of all items, each occurrence counted.
pub fn most_nodes(task: &Items<'_>) -> u64 {
    let of_strings = task
        .shard
        .strings()
        .map_or(0, |_| sum(item_lengths(task).map(|length| n_nodes(task.grammar, length))));
    of_occurrences(task.shard, |length| n_nodes(task.grammar, length)).saturating_add(of_strings)
}
