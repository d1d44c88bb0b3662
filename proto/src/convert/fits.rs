//! What values from the wire say about each other: tokens about the grammar, an answer about its task.
//!
//! In: values that are valid by themselves. Out: nothing, or a [`WireError`]. Does not check what only
//! inference can: whether sentences have derivations, or whether counts are right.
//!
//! And, before a payload is taken, how large it can be at most ([`largest_answer`], [`largest_lease`]), so that
//! nobody makes a peer set aside a gigabyte for ten numbers.

use shared::data::Sentence;
use shared::grammar::ParamId;
use shared::grammar::lexicon::Lexicon;
use shared::grammar::{Grammar, SymbolId};
use shared::models::decode::{Decode, Decoder};
use shared::models::logistic_normal::Prior;
use shared::models::sampler::State;
use shared::models::sampler::state::Choice;
use shared::work::shard::Shard;
use shared::work::task::{
    Answer, ChainFrom, Chained, Collapse, Expectation, Sample, ShardState, Sweeps, Task, Work,
};

use super::{WireError, fit, in_range, latent, same_length};
use crate::payload::MAX_PAYLOAD;
use crate::v1;

/// Whether there is a stick for each nonterminal of `grammar` that rewrites to strings, of strings of its terminals.
pub fn lexicon(grammar: &Grammar, lexicon: &Lexicon) -> Result<(), WireError> {
    same_length("lexicon.sticks", lexicon.sticks.len(), grammar.with_strings().count())?;
    for (at, (stick, symbol)) in lexicon.sticks.iter().zip(grammar.with_strings()).enumerate() {
        if stick.symbol != symbol {
            let found = i64::from(stick.symbol.0);
            let (start, end) = (u64::from(symbol.0), u64::from(symbol.0) + 1);
            return Err(WireError::Range { field: "lexicon.sticks", at, found, start, end });
        }
        terminals("lexicon.strings", grammar, stick.strings.iter().flatten())?;
    }
    Ok(())
}

/// Whether the items are made of terminals of `grammar`, or are strings of `lexicon`.
pub fn shard(grammar: &Grammar, lexicon: &Lexicon, shard: &Shard) -> Result<(), WireError> {
    match shard {
        Shard::Sentences(sentences) => {
            terminals("shard.tokens", grammar, sentences.iter().flat_map(|sentence| &sentence.tokens))
        }
        // They are checked when they are read.
        Shard::Trees { .. } => Ok(()),
        Shard::Strings(params) if params.is_empty() => Ok(()),
        Shard::Strings(params) => {
            let strings = 1 + grammar.rules.len() as u64..lexicon.n_params(grammar) as u64;
            in_range("shard.strings", [params.start, params.end - 1], strings)
        }
    }
}

/// Whether what a task is to be done with is of its grammar, its lexicon, its shard. How many parameters the shard touches, and
/// so how many weights there are to be, comes out when it is computed.
pub fn work(task: &Task) -> Result<(), WireError> {
    let (grammar, lexicon) = (&*task.grammar.value, &*task.lexicon.value);
    match &task.work {
        Work::Decode(decode) => {
            let Decode { weights, segments, .. } = &*decode.value;
            same_length("decode.weights", weights.len(), lexicon.n_params(grammar) + lexicon.sticks.len())?;
            nonterminals("decode.segments", grammar, segments)
        }
        Work::Sample(Sample { keep, .. }) => nonterminals("sample.segments", grammar, keep.iter().flatten()),
        Work::Collapse(Collapse::Others { pseudo, carried, .. }) => {
            self::carried(&task.shard.value, pseudo.len(), &carried.value)
        }
        Work::Sweep(Sweeps { from, pseudo, keep, .. }) => {
            same_length("sweeps.pseudo", pseudo.len(), lexicon.n_params(grammar))?;
            nonterminals("sweeps.segments", grammar, keep.iter().flatten())?;
            match from {
                ChainFrom::Start { .. } => Ok(()),
                ChainFrom::Trees { trees, .. } => {
                    same_length("given.trees", trees.len(), n_occurrences(&task.shard.value))
                }
                ChainFrom::ShardState(carried) => chain(task, &carried.value).map(drop),
            }
        }
        Work::Annotate(annotate) => latent::fits(&task.shard.value, annotate),
        Work::Fit(with) => fit::fits(grammar, &with.value),
        Work::Collapse(Collapse::Start { .. })
        | Work::Candidates { .. }
        | Work::Cover
        | Work::Index
        | Work::Expect { .. } => Ok(()),
    }
}

/// Whether it is what a shard that touches `n_params` parameters carries.
fn carried(shard: &Shard, n_params: usize, carried: &ShardState) -> Result<(), WireError> {
    let ShardState::Counts(counts) = carried else {
        return Err(WireError::ShardState { problem: format!("it is of {}", carried.method()) });
    };
    same_length("carried.counts", counts.len(), n_occurrences(shard))?;
    carried.check(n_params).map_err(|problem| WireError::ShardState { problem })
}

/// Whether it is the state of a chain over the shard.
fn chain<'c>(task: &Task, carried: &'c ShardState) -> Result<&'c State, WireError> {
    let (grammar, lexicon) = (&*task.grammar.value, &*task.lexicon.value);
    let ShardState::Chain(state) = carried else {
        return Err(WireError::ShardState { problem: format!("it is of {}", carried.method()) });
    };
    same_length("chain.trees", state.trees.len(), n_occurrences(&task.shard.value))?;
    same_length("chain.processes", state.hyper.len(), grammar.adapted().count())?;
    for (at, table) in state.tables.iter().enumerate() {
        adapted("chain.symbols", at, grammar, table.symbol)?;
    }
    // The constant one rewrites nothing.
    let params = 1..lexicon.n_params(grammar) as u64;
    in_range("chain.trees", state.trees.iter().flatten().filter_map(param), params.clone())?;
    in_range("chain.labels", state.tables.iter().flat_map(|table| &table.label).filter_map(param), params)?;
    Ok(state)
}

fn param(choice: &Choice) -> Option<u32> {
    match choice {
        Choice::Param(param) => Some(param.0),
        Choice::Table(_) => None,
    }
}

/// Whether `answer` can be one to `task`: its kind, its lengths, its indexes.
pub fn answer(task: &Task, answer: &Answer) -> Result<(), WireError> {
    let (grammar, lexicon) = (&*task.grammar.value, &*task.lexicon.value);
    let (n_items, n_params) = (task.shard.value.len(), lexicon.n_params(grammar) as u64);
    match (&task.work, answer) {
        (Work::Candidates { .. }, Answer::Candidates(found)) => {
            in_range("candidates.unparsable", found.unparsable.iter().copied(), 0..n_items as u64)?;
            for (at, (symbol, string, _)) in found.iter().enumerate() {
                adapted("candidates.symbols", at, grammar, symbol)?;
                terminals("candidates.strings", grammar, string)?;
            }
            Ok(())
        }
        (Work::Cover, Answer::Missing(missing)) => {
            for (at, (symbol, string)) in missing.iter().enumerate() {
                adapted("missing.symbols", at, grammar, *symbol)?;
                terminals("missing.strings", grammar, string)?;
            }
            Ok(())
        }
        (Work::Index, Answer::Index(index)) => {
            in_range("index.params", index.params.iter().map(|param| param.0), 0..n_params)?;
            in_range("index.unparsable", index.unparsable.iter().copied(), 0..n_items as u64)
        }
        (Work::Expect { weights, losses }, Answer::Expectation(found)) => {
            in_range("expectation.missing", found.missing.iter().map(|param| param.0), 0..n_params)?;
            if !found.missing.is_empty() {
                return Ok(()); // the counts mean nothing
            }
            expectation(&task.shard.value, weights.len(), *losses, found)
        }
        (Work::Sample(Sample { weights, keep, .. }), Answer::Sampled(sampled)) => {
            in_range("sampled.missing", sampled.missing.iter().map(|param| param.0), 0..n_params)?;
            if !sampled.missing.is_empty() {
                return Ok(()); // the counts mean nothing
            }
            same_length("sampled.counts", sampled.counts.len(), weights.len())?;
            let n_trees = if keep.is_some() { n_occurrences(&task.shard.value) } else { 0 };
            same_length("sampled.trees", sampled.analyses.len(), n_trees)?;
            let mut analyses = sampled.analyses.iter();
            for sentence in sentences(&task.shard.value) {
                let own = analyses.by_ref().take(sentence.multiplicity as usize);
                whole("sampled.ends", own.map(|analysis| &analysis.ends), sentence.tokens.len())?;
            }
            Ok(())
        }
        (Work::Collapse(collapse), Answer::Collapsed(collapsed)) => {
            let n_touched = n_touched(collapse);
            // A pass has no weights of zero.
            same_length("expectation.missing", collapsed.expectation.missing.len(), 0)?;
            expectation(&task.shard.value, n_touched, false, &collapsed.expectation)?;
            carried(&task.shard.value, n_touched, &collapsed.carried)
        }
        (Work::Sweep(sweeps), Answer::Chained(found)) => chained(task, sweeps, found),
        (Work::Annotate(annotate), Answer::Annotated(found)) => {
            latent::answers(&task.shard.value, annotate, found)
        }
        (Work::Fit(with), Answer::Fitted(found)) => {
            fit::answers(&with.value, n_items, n_occurrences(&task.shard.value), found)
        }
        (Work::Decode(with), Answer::Decoded(decoded)) => {
            same_length("decoded.sentences", decoded.len(), n_items)?;
            let decoders = &with.value.decoders;
            let with_tree = |&&decoder: &&Decoder| with.value.trees && decoder.gives_trees();
            let n_trees = decoders.iter().filter(with_tree).count();
            for (sentence, decoded) in sentences(&task.shard.value).iter().zip(decoded) {
                same_length("decoded.segmentations", decoded.segmentations.len(), decoders.len())?;
                same_length("decoded.trees", decoded.trees.len(), n_trees)?;
                whole("decoded.segmentations", &decoded.segmentations, sentence.tokens.len())?;
            }
            Ok(())
        }
        (work, answer) => Err(WireError::Kind { found: answer_kind(answer), expected: work_kind(work) }),
    }
}

/// Whether there are as many numbers as the shard asks for.
fn expectation(shard: &Shard, n_touched: usize, losses: bool, found: &Expectation) -> Result<(), WireError> {
    same_length("expectation.counts", found.counts.len(), n_touched)?;
    same_length("expectation.losses", found.losses.len(), if losses { n_touched } else { 0 })?;
    let n_log_z = if matches!(shard, Shard::Strings(_)) { shard.len() } else { 0 };
    same_length("expectation.log_z_items", found.log_z_items.len(), n_log_z)
}

/// Whether a chain can have come there by these sweeps.
fn chained(task: &Task, Sweeps { n, keep, .. }: &Sweeps, found: &Chained) -> Result<(), WireError> {
    let (grammar, lexicon) = (&*task.grammar.value, &*task.lexicon.value);
    let Chained { uses, trees, labels, strings, analyses, carried, log_seating: _ } = found;
    same_length("chained.uses", uses.len(), lexicon.n_params(grammar))?;
    let state = chain(task, carried)?;
    let most_nodes = of_occurrences(&task.shard.value, |length| n_nodes(grammar, length));
    at_most("chained.tree_moves", trees.proposed, u64::from(*n).saturating_mul(state.trees.len() as u64))?;
    at_most("chained.label_moves", labels.proposed, u64::from(*n).saturating_mul(most_nodes))?;
    for (at, uses) in strings.iter().enumerate() {
        adapted("chained.strings", at, grammar, uses.symbol)?;
        terminals("chained.strings", grammar, &uses.string)?;
    }
    if keep.is_none() {
        same_length("chained.strings", strings.len(), 0)?;
        return same_length("chained.trees", analyses.len(), 0);
    }
    // Sentences without a derivation have no tree.
    let mut trees = state.trees.iter();
    let mut rest = analyses.iter();
    for sentence in sentences(&task.shard.value) {
        let trees = trees.by_ref().take(sentence.multiplicity as usize);
        let own = rest.by_ref().take(trees.filter(|tree| !tree.is_empty()).count());
        whole("chained.ends", own.map(|analysis| &analysis.ends), sentence.tokens.len())?;
    }
    let n_derived = state.trees.iter().filter(|tree| !tree.is_empty()).count();
    same_length("chained.trees", analyses.len(), n_derived)
}

/// Whether segments end where their sentence does.
fn whole<'a>(
    field: &'static str,
    ends: impl IntoIterator<Item = &'a Vec<u32>>,
    length: usize,
) -> Result<(), WireError> {
    let length = length as u64;
    in_range(field, ends.into_iter().map(|ends| ends.last().copied().unwrap_or(0)), length..length + 1)
}

/// Bytes of tags and lengths around the fields of a message.
const ENVELOPE: u64 = 128;
/// Bytes of an index or a length, at most.
const VARINT: u64 = 5;
/// Bytes of a number.
const DOUBLE: u64 = 8;
/// Bytes of a number of half the precision.
const FLOAT: u64 = 4;
/// Bytes of an exponent, at most.
const EXPONENT: u64 = 10;

/// The most bytes that the payload of a lease can have.
pub fn largest_lease(work: v1::lease_head::Work, grammar: &Grammar, lexicon: &Lexicon) -> u64 {
    match work {
        v1::lease_head::Work::Expect
        | v1::lease_head::Work::Sample
        // Where there are no weights, there are two numbers instead.
        | v1::lease_head::Work::Collapse => {
            let segments = u64::from(grammar.n_nonterminals) * VARINT;
            ENVELOPE + lexicon.n_params(grammar) as u64 * (DOUBLE + EXPONENT) + segments
        }
        // With trees of all sentences, or numbers for every split rule.
        v1::lease_head::Work::Sweep | v1::lease_head::Work::Annotate => MAX_PAYLOAD,
        v1::lease_head::Work::Unspecified
        | v1::lease_head::Work::Candidates
        | v1::lease_head::Work::Cover
        | v1::lease_head::Work::Index
        | v1::lease_head::Work::Decode
        | v1::lease_head::Work::Fit => 0,
    }
}

/// The most bytes that an answer to `task` can have.
pub fn largest_answer(task: &Task) -> u64 {
    let (grammar, lexicon) = (&*task.grammar.value, &*task.lexicon.value);
    let (n_items, n_params) = (task.shard.value.len() as u64, lexicon.n_params(grammar) as u64);
    let body = match &task.work {
        Work::Candidates { max_length } => {
            let of_item = |length| labelled_substrings(grammar, length, u64::from(*max_length), DOUBLE);
            sum(item_lengths(task).map(of_item)).saturating_add(n_items * VARINT)
        }
        Work::Cover => sum(item_lengths(task).map(|length| labelled_substrings(grammar, length, length, 0))),
        Work::Index => (n_params + n_items) * VARINT,
        Work::Expect { weights, losses } => {
            let n_numbers = weights.len() as u64 * (1 + u64::from(*losses)) + n_items;
            n_numbers * DOUBLE + n_params * VARINT
        }
        Work::Sample(Sample { weights, keep, .. }) => {
            let of_tree = |length| segmentation(length).saturating_add(tree(grammar, length));
            let trees = keep.as_ref().map_or(0, |_| of_occurrences(&task.shard.value, of_tree));
            trees.saturating_add(weights.len() as u64 * DOUBLE + n_params * VARINT)
        }
        Work::Collapse(collapse) => {
            let n_touched = n_touched(collapse) as u64;
            // Rules, and strings that are substrings of the sentence.
            let n_rules = 1 + grammar.rules.len() as u64;
            let n_sticks = lexicon.sticks.len() as u64;
            let own = |length: u64| n_touched.min(n_rules + n_sticks * length * (length + 1) / 2);
            let carried = |length| VARINT + own(length) * (VARINT + DOUBLE);
            of_occurrences(&task.shard.value, carried).saturating_add(n_touched * DOUBLE)
        }
        Work::Sweep(sweeps) => largest_chained(task, sweeps),
        Work::Annotate(annotate) => {
            let [n_counts, n_own] = latent::n_numbers(&task.shard.value, annotate);
            n_counts * DOUBLE + n_own * FLOAT + n_items * VARINT
        }
        Work::Fit(with) => {
            let of_prior = |prior: &Prior| {
                let n = prior.n_outcomes() as u64;
                (n * (n + 1) / 2 + 2 * n) * DOUBLE + EXPONENT + VARINT
            };
            sum(with.value.priors.iter().map(of_prior))
                .saturating_add(with.value.n_parts() as u64 * (DOUBLE + EXPONENT))
        }
        Work::Decode(decode) => {
            sum(item_lengths(task).map(|length| decoded_sentence(grammar, &decode.value, length)))
        }
    };
    body.saturating_add(ENVELOPE)
}

fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

/// Parameters of the shard's index.
fn n_touched(collapse: &Collapse) -> usize {
    match collapse {
        Collapse::Start { weights } => weights.len(),
        Collapse::Others { pseudo, .. } => pseudo.len(),
    }
}

fn sentences(shard: &Shard) -> &[Sentence] {
    if let Shard::Sentences(sentences) = shard { sentences } else { &[] }
}

/// How often there is a sentence.
fn n_occurrences(shard: &Shard) -> usize {
    sentences(shard).iter().map(|sentence| sentence.multiplicity as usize).sum()
}

/// Of values of that size by the length of a sentence, one for each occurrence.
fn of_occurrences(shard: &Shard, size: impl Fn(u64) -> u64) -> u64 {
    let of_sentence = |sentence: &Sentence| {
        size(sentence.tokens.len() as u64).saturating_mul(u64::from(sentence.multiplicity))
    };
    sum(sentences(shard).iter().map(of_sentence))
}

fn item_lengths(task: &Task) -> impl Iterator<Item = u64> {
    let (sentences, strings) = match &*task.shard.value {
        Shard::Sentences(sentences) => (&sentences[..], 0..0),
        Shard::Strings(params) => (&[][..], params.clone()),
        Shard::Trees { .. } => (&[][..], 0..0),
    };
    let string = |param| task.lexicon.value.string(&task.grammar.value, ParamId(param));
    let strings = strings.filter_map(string).map(|(_, string)| string.len() as u64);
    sentences.iter().map(|sentence| sentence.tokens.len() as u64).chain(strings)
}

/// All substrings of an item of up to `max_length`, once for every adapted nonterminal, and `extra` bytes each.
fn labelled_substrings(grammar: &Grammar, length: u64, max_length: u64, extra: u64) -> u64 {
    let n_labels = grammar.adaptors.iter().flatten().count() as u64;
    let of_length = |span: u64| (length - span + 1) * ((2 + span) * VARINT + extra);
    sum((1..=length.min(max_length)).map(of_length)).saturating_mul(n_labels)
}

/// A state, and what was asked for of it.
fn largest_chained(task: &Task, sweeps: &Sweeps) -> u64 {
    let (grammar, lexicon) = (&*task.grammar.value, &*task.lexicon.value);
    // A node is a choice of its tree, and the first one at a table is also a choice of the label, whose symbol and length are told.
    let derivation = |length| VARINT + n_nodes(grammar, length).saturating_mul(4 * VARINT);
    let state = of_occurrences(&task.shard.value, derivation);
    let uses = lexicon.n_params(grammar) as u64 * VARINT;
    let processes = grammar.adapted().count() as u64 * (2 * DOUBLE + VARINT);
    let kept = if sweeps.keep.is_some() {
        let strings = |length| labelled_substrings(grammar, length, length, 2 * VARINT);
        let of_tree = |length| segmentation(length).saturating_add(tree(grammar, length));
        sum(item_lengths(task).map(strings)).saturating_add(of_occurrences(&task.shard.value, of_tree))
    } else {
        0
    };
    state.saturating_add(uses).saturating_add(processes).saturating_add(kept).saturating_add(ENVELOPE)
}

/// Segmentations and trees, one per decoder.
fn decoded_sentence(grammar: &Grammar, decode: &Decode, length: u64) -> u64 {
    let n_decoders = decode.decoders.len() as u64;
    let tree = if decode.trees { tree(grammar, length) } else { 0 };
    n_decoders.saturating_mul(segmentation(length).saturating_add(tree)).saturating_add(ENVELOPE)
}

/// A sentence that is cut everywhere.
fn segmentation(length: u64) -> u64 {
    (1 + length) * VARINT
}

/// Nodes of a tree that goes through every nonterminal at each of them: it branches less often than it has leaves, and without
/// cycles passes each nonterminal once between.
fn n_nodes(grammar: &Grammar, length: u64) -> u64 {
    2 * length * (1 + u64::from(grammar.n_nonterminals))
}

/// The largest tree.
fn tree(grammar: &Grammar, length: u64) -> u64 {
    let longest = grammar.symbols.iter().map(|name| name.len() as u64).max().unwrap_or(0);
    // Every letter escaped, two brackets and a space.
    ENVELOPE + n_nodes(grammar, length).saturating_mul(2 * longest + 3)
}

fn answer_kind(answer: &Answer) -> &'static str {
    match answer {
        Answer::Candidates(_) => "candidates",
        Answer::Missing(_) => "missing strings",
        Answer::Index(_) => "an index",
        Answer::Expectation(_) => "an expectation",
        Answer::Sampled(_) => "sampled trees",
        Answer::Collapsed(_) => "a collapsed pass",
        Answer::Chained(_) => "a Markov chain",
        Answer::Decoded(_) => "decoded sentences",
        Answer::Annotated(_) => "uses of split rules",
        Answer::Fitted(_) => "fitted sentences",
    }
}

fn work_kind(work: &Work) -> &'static str {
    match work {
        Work::Candidates { .. } => "candidates",
        Work::Cover => "missing strings",
        Work::Index => "an index",
        Work::Expect { .. } => "an expectation",
        Work::Sample(_) => "sampled trees",
        Work::Collapse(_) => "a collapsed pass",
        Work::Sweep(_) => "a Markov chain",
        Work::Decode(_) => "decoded sentences",
        Work::Annotate(_) => "uses of split rules",
        Work::Fit(_) => "fitted sentences",
    }
}

pub(super) fn at_most(field: &'static str, found: u64, expected: u64) -> Result<(), WireError> {
    if found <= expected { Ok(()) } else { Err(WireError::Excess { field, found, expected }) }
}

fn adapted(field: &'static str, at: usize, grammar: &Grammar, symbol: SymbolId) -> Result<(), WireError> {
    if grammar.is_adapted(symbol) {
        return Ok(());
    }
    let (found, end) = (i64::from(symbol.0), u64::from(grammar.n_nonterminals));
    Err(WireError::Range { field, at, found, start: 0, end })
}

fn nonterminals<'a>(
    field: &'static str,
    grammar: &Grammar,
    symbols: impl IntoIterator<Item = &'a SymbolId>,
) -> Result<(), WireError> {
    let nonterminals = 0..u64::from(grammar.n_nonterminals);
    in_range(field, symbols.into_iter().map(|symbol| symbol.0), nonterminals)
}

fn terminals<'a>(
    field: &'static str,
    grammar: &Grammar,
    symbols: impl IntoIterator<Item = &'a SymbolId>,
) -> Result<(), WireError> {
    let terminals = u64::from(grammar.n_nonterminals)..grammar.symbols.len() as u64;
    in_range(field, symbols.into_iter().map(|symbol| symbol.0), terminals)
}
