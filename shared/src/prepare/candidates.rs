//! Chooses the strings that sticks begin with: the best of the candidates of all sentences.
//!
//! Short strings are counted first, by a shuffle and [`Ranking`]; then, in one pass after the other, strings of up to twice as many
//! symbols, those alone that can still be among the best. The workers bound the counts of the strings that begin with one of the
//! longest that were counted; those whose bound is below the last of the best so far are not counted. What is chosen is the same, bit for
//! bit, as if all had been.

use super::shuffle::Shuffle;
use super::{PrepareError, ShardSet, Workers};
use crate::grammar::lexicon::{Lexicon, StickStrings, Strings};
use crate::grammar::{Grammar, SymbolId};
use crate::models::adaptor::candidates::Ranking;
use crate::settings::Inference;
use crate::work::task::{Answer, Candidates, Language, Lengths, Named, Work};

/// Symbols of the longest strings that the first pass counts.
const FIRST_LENGTH: u32 = 4;

/// Strings that may begin longer ones, at most; if there are more, the next pass counts all.
const MAX_BEGINNINGS: usize = 1 << 22;

/// Bytes of counts that are shuffled in memory.
const SHUFFLED: usize = 64 << 20;

/// How strings are chosen.
pub struct StringChoice {
    /// Strings per adapted nonterminal.
    pub truncation: usize,
    /// ρ of Eq. 3.
    pub rho: f64,
    /// Longest string.
    pub max_length: u32,
}

impl From<&Inference> for StringChoice {
    fn from(inference: &Inference) -> StringChoice {
        let Inference { truncation, rho, max_string: max_length, .. } = *inference;
        StringChoice { truncation, rho, max_length }
    }
}

/// The best strings of every adapted nonterminal.
pub fn choose<W: Workers>(
    workers: &W,
    grammar: &Named<Grammar>,
    choice: &StringChoice,
) -> Result<Lexicon, W::Error> {
    let named = grammar;
    let grammar = &*grammar.value;
    let adapted: Vec<SymbolId> = grammar.adapted().collect();
    let empty = || Ranking::new(&adapted, choice.truncation, choice.rho);
    let mut ranking = empty();
    let mut beginnings = no_strings(grammar);
    let mut lengths = Lengths { max_length: choice.max_length, longer_than: 0, up_to: FIRST_LENGTH };
    loop {
        let language = Language { grammar: named.clone(), lexicon: Named::new(beginnings) };
        let sums = count(workers, &language, lengths)?;
        workers.accept(&sums.unparsable)?;
        let unreadable = |source| PrepareError::Strings { folder: workers.folder().to_owned(), source };
        sums.counted.fold(&mut ranking, empty, Ranking::add, Ranking::merge).map_err(unreadable)?;
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
        sums.longer.fold(&mut open, || no_strings(grammar).sticks, add, merge).map_err(unreadable)?;
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
fn count<W: Workers>(workers: &W, language: &Language, lengths: Lengths) -> Result<Sums, W::Error> {
    let folder = workers.folder();
    let shuffle = || Shuffle::new_in(folder, SHUFFLED / 2);
    let full = |source| PrepareError::Strings { folder: folder.to_owned(), source };
    let mut sums = Sums { counted: shuffle(), longer: shuffle(), longest: 0, unparsable: Vec::new() };
    workers.compute(language, ShardSet::Sentences, Work::Candidates(lengths), &mut |shard, answer| {
        if let Answer::Candidates(Candidates { counted, longer, longest, unparsable }) = answer {
            sums.counted.add(&counted).map_err(full)?;
            sums.longer.add(&longer).map_err(full)?;
            sums.longest = sums.longest.max(longest);
            sums.unparsable.extend(unparsable.into_iter().map(|item| (shard, item)));
        }
        Ok(())
    })?;
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::fit::Cause;
    use crate::fit::in_process::InProcess;
    use crate::grammar::ParamId;
    use crate::grammar::syntax;
    use crate::num::Noise;
    use crate::work::shard::{Shard, cut};

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
            let shards = shards.into_iter().map(Named::new).collect();
            let inner = InProcess::new(shards, Default::default(), 1 << 28);
            let workers = Counting { inner, passes: Cell::new(0) };
            let grammar = Named::new(grammar);
            for (truncation, rho) in [(0, 0.0), (3, -0.2), (40, -0.2), (40, 0.0), (200, 0.5), (100_000, -0.2)]
            {
                for max_length in [5, 64] {
                    let choice = StringChoice { truncation, rho, max_length };
                    let all = all_at_once(&workers, &grammar, &choice);
                    let before = workers.passes.get();
                    let found = choose(&workers, &grammar, &choice).unwrap();
                    assert_eq!(found, all, "grammar {number}, {truncation} strings, rho {rho}, {max_length}");
                    n_passes += workers.passes.get() - before;
                }
            }
        }
        assert!(n_passes > 45, "{n_passes} passes in 36 cases");
    }

    /// Counts passes over the sentences.
    struct Counting {
        inner: InProcess,
        passes: Cell<usize>,
    }

    impl Workers for Counting {
        type Error = Cause;
        type Params = Arc<Vec<ParamId>>;

        fn compute(
            &self,
            language: &Language,
            on: ShardSet<'_>,
            work: Work,
            each: &mut dyn FnMut(usize, Answer) -> Result<(), Cause>,
        ) -> Result<(), Cause> {
            self.passes.set(self.passes.get() + 1);
            self.inner.compute(language, on, work, each)
        }

        fn keep(&self, params: Vec<ParamId>) -> Result<Self::Params, Cause> {
            self.inner.keep(params)
        }

        /// Some of the sentences have no derivation, and are left out.
        fn accept(&self, _: &[(usize, u32)]) -> Result<(), Cause> {
            Ok(())
        }

        fn folder(&self) -> &Path {
            self.inner.folder()
        }
    }

    fn all_at_once(workers: &Counting, grammar: &Named<Grammar>, choice: &StringChoice) -> Lexicon {
        let adapted: Vec<SymbolId> = grammar.value.adapted().collect();
        let mut sums: BTreeMap<(SymbolId, Vec<SymbolId>), f64> = BTreeMap::new();
        let lexicon = Named::new(no_strings(&grammar.value));
        let language = Language { grammar: grammar.clone(), lexicon };
        let work = Work::Candidates(Lengths::all(choice.max_length));
        let add = &mut |_, answer| {
            let Answer::Candidates(found) = answer else { unreachable!() };
            for (symbol, string, expected) in found.counted.iter() {
                *sums.entry((symbol, string.to_vec())).or_default() += expected;
            }
            Ok(())
        };
        workers.compute(&language, ShardSet::Sentences, work, add).unwrap();
        let mut ranking = Ranking::new(&adapted, choice.truncation, choice.rho);
        sums.iter().for_each(|((symbol, string), &sum)| ranking.add(*symbol, string, sum));
        Lexicon { sticks: ranking.top() }
    }
}
