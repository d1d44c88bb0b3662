//! Candidate strings are counted by pattern; beside them stands the count sentence by sentence.

use std::collections::{BTreeMap, BTreeSet};

use grammaton::data::Sentence;
use grammaton::forest::Prepared;
use grammaton::forest::binary::{Adapted, Kind};
use grammaton::forest::build::Builder;
use grammaton::forest::inside::{Scratch, Weights, edge_posteriors, real};
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::{Grammar, SymbolId, syntax};
use grammaton::num::{Noise, Wide};
use grammaton::work::engine::Engine;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Lengths, Work};

use crate::support::Run;

type Counts = BTreeMap<(SymbolId, Vec<SymbolId>), u64>;

/// Of each sentence by its own forest, in the order of the forest's nodes; the bits of the sums.
fn by_sentence(grammar: &Grammar, sentences: &[Sentence], max_length: u32) -> Counts {
    let prepared = Prepared::new(grammar.clone(), Lexicon::default());
    let builder = || Builder::new(&prepared.binary, &prepared.strings, Adapted::Rules);
    let (mut limited, mut unlimited) = (builder().with_max_yield(max_length), builder());
    let wide = vec![Wide::ONE; grammar.space().n_params()];
    let weights = Weights { real: &real(&wide), wide: &wide };
    let mut counts: BTreeMap<(SymbolId, Vec<SymbolId>), f64> = BTreeMap::new();
    for Sentence { tokens, multiplicity, .. } in sentences {
        let forest = limited.build(0, tokens).unwrap().or_else(|| unlimited.build(0, tokens).unwrap());
        let Some(forest) = forest else { continue };
        edge_posteriors(&forest, &weights, &mut Scratch::default(), |node, _, posterior| {
            let label = forest.labels[node];
            if let Kind::Adapted(_) = prepared.binary.kinds[label.symbol as usize] {
                let string = tokens[label.start as usize..label.end as usize].to_vec();
                *counts.entry((SymbolId(label.symbol), string)).or_default() +=
                    f64::from(*multiplicity) * posterior;
            }
        });
    }
    counts.into_iter().map(|(string, sum)| (string, sum.to_bits())).collect()
}

/// A grammar over six letters, drawn: some of them under the same nonterminals, some in rules of their own.
fn drawn_grammar(draw: &mut impl FnMut(usize) -> usize) -> Grammar {
    let letters = ["a", "b", "c", "d", "e", "f"];
    let mut text = String::from("1 1 S --> C S\n1 1 S --> C\nC --> Ws\n1 1 Ws --> W Ws\n1 1 Ws --> W\n");
    text +=
        ["W --> X\nW --> Y\n", "W --> X W\nW --> X\nW --> Y Y\n", "W --> Y X\nW --> X Y\nW --> Y\nW --> X\n"]
            [draw(3)];
    for letter in letters {
        text += &format!("1 1 {} --> {letter}\n", ["X", "Y", "X"][draw(3)]);
        if draw(5) == 0 {
            text += &format!("1 1 X --> {letter} Y\n");
        }
        if draw(5) == 0 {
            text += &format!("1 1 Y --> {letter}\n1 1 Y --> X {letter}\n");
        }
    }
    text += "1 1 X --> g\n1 1 Y --> h\n1 1 Y --> Y Y\n";
    let mut known = BTreeSet::new();
    let lines: Vec<&str> = text.lines().filter(|line| known.insert(*line)).collect();
    syntax::parse(&lines.join("\n"), "drawn").unwrap_or_else(|error| panic!("{error}\n{text}")).0
}

/// Law: counting by pattern has the bits of counting sentence by sentence, whatever the grammar and the sentences.
#[test]
fn counts_by_pattern_have_the_bits_of_counts_by_sentence() {
    let (mut n_strings, mut n_alike) = (0, 0);
    for case in 0..60 {
        let noise = Noise::new(11, case);
        let mut drawn = 0;
        let mut draw = |n: usize| {
            drawn += 1;
            (noise.symmetric(drawn).abs() * n as f64) as usize % n
        };
        let grammar = drawn_grammar(&mut draw);
        let alike = grammaton::grammar::alike::representatives(&grammar);
        n_alike += (0..).map(SymbolId).zip(&alike).filter(|(symbol, first)| symbol != *first).count();
        let terminals = grammar.symbols.len() - grammar.n_nonterminals as usize;
        let sentences: Vec<Vec<SymbolId>> = (0..40)
            .map(|_| {
                (0..1 + draw(7)).map(|_| SymbolId(grammar.n_nonterminals + draw(terminals) as u32)).collect()
            })
            .collect();
        for max_length in [2, 64] {
            let run = Run::cut(&grammar, &Lexicon::default(), &sentences, 10_000, 40);
            let Shard::Sentences(distinct) = run.shards[0].value.as_ref() else { unreachable!() };
            let expected = by_sentence(&grammar, distinct, max_length);
            let work = Work::Candidates(Lengths::all(max_length));
            let Answer::Candidates(found) = run.answer(&Engine::default(), &run.shards[0], work) else {
                unreachable!()
            };
            let bits =
                found.counted.iter().map(|(symbol, string, sum)| ((symbol, string.to_vec()), sum.to_bits()));
            let bits: Counts = bits.collect();
            assert_eq!(bits, expected, "case {case}, {max_length}");
            assert_eq!(bits.len(), found.counted.amounts.len(), "each once");
            n_strings += bits.len();
        }
    }
    assert!(n_strings > 1_000 && n_alike > 100, "{n_strings} strings, {n_alike} terminals like others");
}
