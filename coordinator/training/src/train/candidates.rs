//! Chooses the strings that sticks begin with: the best of the candidates of all sentences.
//!
//! Short strings are counted first, by [`Shuffle`] and [`Ranking`]; then, in one pass after the other, strings of up to twice as many
//! symbols, those alone that can still be among the best. The workers bound the counts of the strings that begin with one of the
//! longest that were counted; those whose bound is below the last of the best so far are not counted. What is chosen is the same, bit for
//! bit, as if all had been.

use std::path::Path;

use anyhow::Result;
use fleet::{Map, Stage};
use grammaton::grammar::lexicon::{Lexicon, StickStrings, Strings};
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::models::adaptor::candidates::Ranking;
use grammaton::work::task::{Answer, Candidates, Lengths, Work};

use super::plan::{self, OnShards};
use super::shuffle::Shuffle;

/// Symbols of the longest strings that the first pass counts.
const FIRST_LENGTH: u32 = 4;

/// Strings that may begin longer ones, at most; if there are more, the next pass counts all.
const MAX_BEGINNINGS: usize = 1 << 22;

/// Bytes of counts that are shuffled in memory.
const SHUFFLED: usize = 64 << 20;

/// How strings are chosen.
pub struct Choice {
    /// Strings per adapted nonterminal.
    pub truncation: usize,
    /// ρ of Eq. 3.
    pub rho: f64,
    /// Longest string.
    pub max_length: u32,
}

/// The best strings of every adapted nonterminal. `tasks` asks the sentences for work with a lexicon; `refuse` gets the sentences that the grammar cannot derive, by shard and position
/// in it; files are made in `folder`.
pub fn choose(
    fleet: &dyn Map,
    grammar: &Grammar,
    tasks: impl Fn(Lexicon, Work) -> OnShards,
    choice: &Choice,
    folder: &Path,
    refuse: impl Fn(&[(usize, u32)]) -> Result<()>,
) -> Result<Lexicon> {
    let adapted: Vec<SymbolId> = grammar.adapted().collect();
    let empty = || Ranking::new(&adapted, choice.truncation, choice.rho);
    let mut ranking = empty();
    let mut beginnings = no_strings(grammar);
    let mut lengths = Lengths { max_length: choice.max_length, longer_than: 0, up_to: FIRST_LENGTH };
    loop {
        let sums = count(fleet, tasks(beginnings, Work::Candidates(lengths)), folder)?;
        refuse(&sums.unparsable)?;
        sums.counted.fold(&mut ranking, empty, Ranking::add, Ranking::merge)?;
        let limits = ranking.limits();
        let left = lengths.up_to as usize + 1..=sums.longest as usize;
        let add = |open: &mut Vec<StickStrings>, symbol: SymbolId, string: &[SymbolId], expected: f64| {
            if let Ok(stick) = adapted.binary_search(&symbol)
                && limits.admit(symbol, left.clone(), expected)
            {
                open[stick].strings.push(string);
            }
        };
        let merge = |open: &mut Vec<StickStrings>, others: Vec<StickStrings>| {
            open.iter_mut().zip(others).for_each(|(open, others)| open.strings.extend(&others.strings));
        };
        let mut open = no_strings(grammar).sticks;
        sums.longer.fold(&mut open, || no_strings(grammar).sticks, add, merge)?;
        let n_open: usize = open.iter().map(|stick| stick.strings.len()).sum();
        if n_open == 0 {
            return Ok(Lexicon { sticks: ranking.top() });
        }
        beginnings = match n_open {
            0..=MAX_BEGINNINGS => Lexicon { sticks: open.into_iter().map(sorted).collect() },
            _ => no_strings(grammar),
        };
        // Where there is room for all strings, more passes would spare nothing.
        let up_to = if limits.are_finite() { lengths.up_to.saturating_mul(2) } else { u32::MAX };
        lengths = Lengths { longer_than: lengths.up_to, up_to, ..lengths };
    }
}

/// The strings in lexicographic order, which does not depend on the threads that found them.
fn sorted(StickStrings { symbol, strings }: StickStrings) -> StickStrings {
    let mut order: Vec<&[SymbolId]> = strings.iter().collect();
    order.sort_unstable();
    StickStrings { symbol, strings: order.into_iter().collect() }
}

/// The lexicon of a grammar before strings are chosen.
pub fn no_strings(grammar: &Grammar) -> Lexicon {
    let empty = grammar.adapted().map(|symbol| StickStrings { symbol, strings: Strings::new() });
    Lexicon { sticks: empty.collect() }
}

/// Counts of all shards together.
struct Sums {
    /// Sums of [`Candidates::counted`].
    counted: Shuffle,
    /// Sums of [`Candidates::longer`].
    longer: Shuffle,
    /// The largest of [`Candidates::longest`].
    longest: u32,
    /// Sentences without a derivation, by shard and position in it.
    unparsable: Vec<(usize, u32)>,
}

/// Makes one pass over the sentences.
fn count(fleet: &dyn Map, tasks: OnShards, folder: &Path) -> Result<Sums> {
    let shuffle = || Shuffle::new_in(folder, SHUFFLED / 2);
    let mut sums = Sums { counted: shuffle(), longer: shuffle(), longest: 0, unparsable: Vec::new() };
    plan::map(fleet, Stage::Candidates, tasks, |shard, answer| {
        if let Answer::Candidates(Candidates { counted, longer, longest, unparsable }) = answer {
            sums.counted.add(&counted)?;
            sums.longer.add(&longer)?;
            sums.longest = sums.longest.max(longest);
            sums.unparsable.extend(unparsable.into_iter().map(|item| (shard, item)));
        }
        Ok(())
    })?;
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use fleet::Inline;
    use grammaton::grammar::syntax;
    use grammaton::num::Noise;
    use grammaton::work::engine::engine;
    use grammaton::work::shard::{Shard, cut};
    use grammaton::work::task::{Language, Named};

    use super::*;
    use crate::train::spill::Kept;

    struct Sentences {
        grammar: Named<Grammar>,
        shards: Vec<Kept<Shard>>,
    }

    impl Sentences {
        fn tasks(&self, lexicon: Lexicon, work: Work) -> OnShards {
            let language = Language { grammar: self.grammar.clone(), lexicon: Named::new(lexicon) };
            OnShards { language, shards: self.shards.clone(), work }
        }
    }

    /// A word of letters, of letters that come in pairs, and of words; collocations of words.
    const GRAMMARS: [&str; 3] = [
        "1 1 S --> W S\n1 1 S --> W\nW --> Ls\n1 1 Ls --> L Ls\n1 1 Ls --> L\n1 1 L --> a\n1 1 L --> b\n1 1 L --> c\n1 1 L --> d\n",
        "1 1 S --> W S\n1 1 S --> W\nW --> P\nW --> W P\n1 1 P --> L L\n1 1 P --> c\n1 1 L --> a\n1 1 L --> b\n1 1 L --> d\n1 1 L --> c\n",
        "1 1 S --> C S\n1 1 S --> C\nC --> Ws\n1 1 Ws --> W Ws\n1 1 Ws --> W\nW --> Ls\n1 1 Ls --> L Ls\n1 1 Ls --> L\n1 1 L --> a\n1 1 L --> b\n1 1 L --> c\n1 1 L --> d\n",
    ];

    /// Law: what is chosen by passes is what is chosen if all strings are counted, summed in the order of the shards.
    #[test]
    fn passes_choose_the_strings_that_counting_all_chooses() {
        let mut n_passes = 0;
        for (number, text) in GRAMMARS.iter().enumerate() {
            let grammar = syntax::parse(text, "g").unwrap().0;
            let letters = ["a", "b", "c", "d"].map(|name| grammar.symbol(name).unwrap());
            let noise = Noise::new(3, number as u64);
            // Words of a lexicon of forty, so that some long strings are frequent.
            let random = |at: usize, n: usize| (noise.symmetric(at as u64).abs() * n as f64) as usize % n;
            let word = |at: usize| (0..2 + at % 5).map(move |letter| letters[random(at * 10 + letter, 4)]);
            let sentence = |at: usize| -> Vec<SymbolId> {
                let words = 1 + at % 4;
                (0..words).flat_map(|within| word(random(1000 + at * 7 + within, 40))).collect()
            };
            let corpus: Vec<Vec<SymbolId>> = (0..400).map(sentence).collect();
            let shards: Vec<Shard> = cut(&corpus, 300).into_iter().map(|shard| shard.shard).collect();
            let kept = shards.into_iter().map(|shard| Kept::at_hand(Named::new(shard))).collect();
            let sentences = Sentences { grammar: Named::new(grammar), shards: kept };
            for (truncation, rho) in [(0, 0.0), (3, -0.2), (40, -0.2), (40, 0.0), (200, 0.5), (100_000, -0.2)]
            {
                for max_length in [5, 64] {
                    let choice = Choice { truncation, rho, max_length };
                    let all = all_at_once(&sentences, &choice);
                    let (found, passes) = by_passes(&sentences, &choice);
                    assert_eq!(found, all, "grammar {number}, {truncation} strings, rho {rho}, {max_length}");
                    n_passes += passes;
                }
            }
        }
        assert!(n_passes > 45, "{n_passes} passes in 36 cases");
    }

    fn all_at_once(sentences: &Sentences, choice: &Choice) -> Lexicon {
        let adapted: Vec<SymbolId> = sentences.grammar.value.adapted().collect();
        let mut sums: BTreeMap<(SymbolId, Vec<SymbolId>), f64> = BTreeMap::new();
        let none = no_strings(&sentences.grammar.value);
        let tasks = sentences.tasks(none, Work::Candidates(Lengths::all(choice.max_length)));
        plan::map(&Inline::default(), Stage::Candidates, tasks, |_, answer| {
            let Answer::Candidates(found) = answer else { unreachable!() };
            for (symbol, string, expected) in found.counted.iter() {
                *sums.entry((symbol, string.to_vec())).or_default() += expected;
            }
            Ok(())
        })
        .unwrap();
        let mut ranking = Ranking::new(&adapted, choice.truncation, choice.rho);
        sums.iter().for_each(|((symbol, string), &sum)| ranking.add(*symbol, string, sum));
        Lexicon { sticks: ranking.top() }
    }

    fn by_passes(sentences: &Sentences, choice: &Choice) -> (Lexicon, usize) {
        let n_tasks = Arc::new(AtomicUsize::new(0));
        let (compute, counted) = (engine(), n_tasks.clone());
        let fleet = Inline::new(Arc::new(move |task| {
            counted.fetch_add(1, Ordering::Relaxed);
            compute(task)
        }));
        let folder = tempfile::tempdir().unwrap();
        let (grammar, tasks) = (&sentences.grammar.value, |lexicon, work| sentences.tasks(lexicon, work));
        let found = choose(&fleet, grammar, tasks, choice, folder.path(), |_| Ok(())).unwrap();
        (found, n_tasks.load(Ordering::Relaxed) / sentences.shards.len())
    }
}
