//! Decoders against enumeration, strings expanded.

use std::collections::BTreeMap;
use std::sync::Arc;

use grammaton::forest::Prepared;
use grammaton::grammar::ParamId;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::tree::Tree;
use grammaton::grammar::{Grammar, StickId, SymbolId};
use grammaton::models::adaptor::Stick;
use grammaton::models::decode::decode;
use grammaton::models::decode::{Decode, Decoded, Decoder, NEGLIGIBLE};
use grammaton::models::segments::{Segments, Span};

use crate::support::{self, Enumerator, Examined, Mode, assert_close, choose, sum, wide};

const ALL: [Decoder; 3] = [Decoder::Viterbi, Decoder::Mbr, Decoder::MbrTree];

fn colloc() -> Grammar {
    support::grammar(
        "1 1 S --> Cs\n1 1 Cs --> C\n1 1 Cs --> C Cs\nC --> Ws\n2 1 Ws --> W\n1 1 Ws --> W Ws\nW --> Ls\n\
         2 1 Ls --> L\n1 1 Ls --> L Ls\n1 1 L --> a\n1 1 L --> b\n",
    )
}

struct Case {
    grammar: Grammar,
    lexicon: Lexicon,
    /// `[n_params + n_adapted]`
    ln_weights: Vec<f64>,
    segments: Vec<SymbolId>,
    open: bool,
}

impl Case {
    fn new(grammar: Grammar, lexicon: Lexicon, seed: usize) -> Case {
        let n = lexicon.space(&grammar).n_with_escapes();
        // No two derivations weigh the same.
        let ln_weight = |at: usize| ((at * 37 + seed * 101) as f64).sin() * 1.5 - 1.5;
        let ln_weights = (0..n).map(|at| if at == 0 { 0.0 } else { ln_weight(at) }).collect();
        let segments = vec![grammar.symbol("W").unwrap()];
        Case { grammar, lexicon, ln_weights, segments, open: false }
    }

    fn set(&mut self, strings: &[(&str, &str, f64)]) {
        for &(name, string, weight) in strings {
            let param = support::param(&self.grammar, &self.lexicon, name, string);
            self.ln_weights[param.index()] = weight.ln();
        }
    }

    fn decode(&self, sentence: &[SymbolId]) -> Decoded {
        let prepared = Prepared::new(Arc::new(self.grammar.clone()), Arc::new(self.lexicon.clone()));
        let with = Decode {
            weights: wide(&self.ln_weights),
            segments: self.segments.clone(),
            decoders: ALL.to_vec(),
            trees: true,
            spans: true,
            open: self.open,
        };
        decode(&prepared, &with, &[sentence]).unwrap().remove(0)
    }

    fn mode(&self) -> Mode {
        if self.open { Mode::Open } else { Mode::Strings }
    }

    fn is_segment(&self, label: &str) -> bool {
        self.segments.iter().any(|&symbol| self.grammar.name(symbol) == label)
    }

    /// Expected number of outermost segments by span, in an item and inside the strings it uses.
    fn spans(&self, tokens: &[SymbolId], base: Option<SymbolId>) -> BTreeMap<(usize, usize), f64> {
        let mut spans = BTreeMap::new();
        let derivations = Enumerator::new(&self.grammar, &self.lexicon, self.mode(), tokens).all(base);
        let Some(sums) = sum(&derivations, &self.ln_weights) else { return spans };
        for (derivation, posterior) in derivations.iter().zip(&sums.posteriors) {
            // Parents come before children.
            let mut outermost: Vec<(usize, usize)> = Vec::new();
            for &(symbol, start, end) in &derivation.constituents {
                let nested = outermost.iter().any(|&(from, to)| from <= start && end <= to);
                if self.segments.contains(&symbol) && !nested {
                    outermost.push((start, end));
                    *spans.entry((start, end)).or_default() += posterior;
                }
            }
            for &(param, start, end) in &derivation.strings {
                let (symbol, string) = self.lexicon.string(&self.grammar, param).unwrap();
                if !outermost.iter().any(|&(from, to)| from <= start && end <= to) {
                    for ((from, to), inside) in self.spans(string, Some(symbol)) {
                        *spans.entry((start + from, start + to)).or_default() += posterior * inside;
                    }
                }
            }
        }
        spans
    }

    /// The value of every segmentation into spans that can be segments, best first.
    fn segmentations(&self, tokens: &[SymbolId]) -> Vec<(f64, Vec<u32>)> {
        let spans = self.spans(tokens, None);
        let mut all = Vec::new();
        for cuts in 0..1u32 << (tokens.len() - 1) {
            let inner = (1..tokens.len() as u32).filter(|at| cuts >> (at - 1) & 1 == 1);
            let ends: Vec<u32> = inner.chain([tokens.len() as u32]).collect();
            let starts = [&[0], &ends[..ends.len() - 1]].concat();
            let values = starts
                .iter()
                .zip(&ends)
                .map(|(&start, &end)| spans.get(&(start as usize, end as usize)).copied());
            if let Some(value) = values.sum::<Option<f64>>() {
                all.push((value, ends));
            }
        }
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        all
    }
}

fn sentences(grammar: &Grammar) -> Vec<Vec<SymbolId>> {
    ["a b a b", "a a b", "b b a a b", "a", "b a b a"].map(|text| support::tokens(grammar, text)).into()
}

fn cases() -> impl Iterator<Item = Case> {
    (0..12).map(|seed| {
        let grammar = colloc();
        let mut lexicon = choose(&grammar, &sentences(&grammar), 1000, 0.0);
        // Some strings less, so that cases differ in more than weights.
        for stick in &mut lexicon.sticks {
            let mut at = 0;
            let kept = stick.strings.iter().filter(|string| {
                at += 1;
                string.len() == 1 || (at + seed) % 3 > 0
            });
            stick.strings = kept.collect();
        }
        Case { open: seed % 2 == 1, ..Case::new(grammar, lexicon, seed) }
    })
}

#[test]
fn log_z_is_that_of_enumeration() {
    for case in cases() {
        for sentence in sentences(&case.grammar) {
            let derivations = Enumerator::new(&case.grammar, &case.lexicon, case.mode(), &sentence).all(None);
            let expected = sum(&derivations, &case.ln_weights).map_or(f64::NEG_INFINITY, |sums| sums.log_z);
            let found = case.decode(&sentence).log_z;
            assert!(found == expected || (found - expected).abs() < 1e-12, "{found}, expected {expected}");
        }
    }
}

#[test]
fn viterbi_trees_are_the_most_probable_level_by_level() {
    for case in cases() {
        for sentence in sentences(&case.grammar) {
            let decoded = case.decode(&sentence);
            let tree = Tree::parse(&decoded.trees[0]).unwrap();
            let names: Vec<&str> = sentence.iter().map(|&token| case.grammar.name(token)).collect();
            assert_eq!(tree.terminals().collect::<Vec<_>>(), names);
            assert_eq!(tree.segment_ends(|label| case.is_segment(label)), decoded.segmentations[0]);
            let mut labels = best_labels(&case, &sentence, None);
            labels.sort_unstable();
            let mut found = labels_of(&case.grammar, &tree);
            found.sort_unstable();
            assert_eq!(found, labels, "{}", decoded.trees[0]);
        }
    }
}

/// The constituents of the best derivation, and of the best ones of its strings.
fn best_labels(case: &Case, tokens: &[SymbolId], base: Option<SymbolId>) -> Vec<(SymbolId, usize, usize)> {
    let derivations = Enumerator::new(&case.grammar, &case.lexicon, case.mode(), tokens).all(base);
    let by_weight = |derivation: &&support::Derivation| derivation.ln_weight(&case.ln_weights);
    let best = derivations.iter().max_by(|a, b| by_weight(a).total_cmp(&by_weight(b)));
    let Some(best) = best else { return Vec::new() };
    let mut labels = best.constituents.clone();
    for &(param, start, end) in &best.strings {
        let (symbol, _) = case.lexicon.string(&case.grammar, param).unwrap();
        let inner = best_labels(case, &tokens[start..end], Some(symbol));
        labels.extend(inner.into_iter().map(|(symbol, from, to)| (symbol, start + from, start + to)));
    }
    labels
}

fn labels_of(grammar: &Grammar, tree: &Tree) -> Vec<(SymbolId, usize, usize)> {
    fn walk(
        grammar: &Grammar,
        tree: &Tree,
        node: &mut usize,
        at: usize,
        labels: &mut Vec<(SymbolId, usize, usize)>,
    ) -> usize {
        let this = &tree.nodes()[*node];
        *node += 1;
        if this.n_children == 0 {
            return at + 1;
        }
        let end = (0..this.n_children).fold(at, |at, _| walk(grammar, tree, node, at, labels));
        labels.push((grammar.symbol(&this.label).unwrap(), at, end));
        end
    }
    let mut labels = Vec::new();
    walk(grammar, tree, &mut 0, 0, &mut labels);
    labels
}

/// The probabilities of segments are those of enumeration.
fn check_spans(case: &Case, sentence: &[SymbolId], decoded: &Decoded) {
    let expected = case.spans(sentence, None);
    let found = |start: usize, end: usize| {
        let place = (start as u32, end as u32);
        let at = decoded.spans.binary_search_by_key(&place, |&(start, end, _)| (start, end));
        at.map_or(0.0, |at| decoded.spans[at].2)
    };
    for (&(start, end), &probability) in &expected {
        assert_close(found(start, end), probability, 2.0 * NEGLIGIBLE, "probability of a segment");
    }
    let is_known = |&(start, end, _): &Span| expected.contains_key(&(start as usize, end as usize));
    assert!(decoded.spans.iter().all(is_known), "{:?}", decoded.spans);
    assert!(decoded.spans.is_sorted_by_key(|&(start, end, _)| (start, end)));
}

#[test]
fn mbr_is_the_segmentation_with_most_expected_segments() {
    let examined = Examined::none();
    for case in cases() {
        for sentence in sentences(&case.grammar) {
            let decoded = case.decode(&sentence);
            let all = case.segmentations(&sentence);
            if all.is_empty() {
                assert_eq!(decoded.log_z, f64::NEG_INFINITY);
                continue;
            }
            examined.one();
            check_spans(&case, &sentence, &decoded);
            let segments = Segments::new(sentence.len() as u32, decoded.spans.clone());
            assert_eq!(segments.best(), decoded.segmentations[1]);
            let found =
                all.iter().find(|(_, ends)| *ends == decoded.segmentations[1]).expect("segments only");
            assert_close(found.0, all[0].0, 1e-8, "expected number of segments");
        }
    }
    examined.assert_at_least(30);
}

#[test]
fn mbr_trees_have_most_expected_constituents() {
    let examined = Examined::none();
    for case in cases() {
        for sentence in sentences(&case.grammar) {
            let decoded = case.decode(&sentence);
            let derivations = Enumerator::new(&case.grammar, &case.lexicon, case.mode(), &sentence).all(None);
            let Some(sums) = sum(&derivations, &case.ln_weights) else { continue };
            examined.one();
            let mut posteriors: BTreeMap<(SymbolId, usize, usize), f64> = BTreeMap::new();
            for (derivation, posterior) in derivations.iter().zip(&sums.posteriors) {
                for &constituent in &derivation.constituents {
                    *posteriors.entry(constituent).or_default() += posterior;
                }
            }
            let value = |d: &support::Derivation| d.constituents.iter().map(|c| posteriors[c]).sum::<f64>();
            let best = derivations.iter().map(value).fold(0.0, f64::max);
            // The tree goes on inside of strings; some derivation with the best value is its upper part.
            let tree = labels_of(&case.grammar, &Tree::parse(&decoded.trees[1]).unwrap());
            let within = |d: &&support::Derivation| d.constituents.iter().all(|c| tree.contains(c));
            let found = derivations.iter().filter(within).map(value).fold(0.0, f64::max);
            assert_close(found, best, 1e-12, "expected number of constituents");
        }
    }
    examined.assert_at_least(30);
}

#[test]
fn segments_inside_of_segments_do_not_count() {
    let examined = Examined::none();
    let recursive = "1 1 S --> W\n1 1 S --> W S\nW --> L\nW --> W L\nW --> L L W\n1 1 L --> a\n1 1 L --> b\n1 1 L --> X\nX --> a b\n";
    for seed in 0..30 {
        let (grammar, segments) = match seed % 3 {
            0 => (colloc(), ["W", "C"]),
            1 => (colloc(), ["Ls", "W"]),
            _ => (support::grammar(recursive), ["W", "X"]),
        };
        let lexicon = choose(&grammar, &sentences(&grammar), 8, 0.0);
        let segments = segments.map(|name| grammar.symbol(name).unwrap()).to_vec();
        let case = Case { segments, open: seed % 2 == 1, ..Case::new(grammar, lexicon, seed) };
        for sentence in sentences(&case.grammar) {
            let decoded = case.decode(&sentence);
            let all = case.segmentations(&sentence);
            if all.is_empty() {
                continue;
            }
            examined.one();
            check_spans(&case, &sentence, &decoded);
            let found =
                all.iter().find(|(_, ends)| *ends == decoded.segmentations[1]).expect("segments only");
            assert_close(found.0, all[0].0, 1e-8, "expected number of segments");
        }
    }
    examined.assert_at_least(75);
}

#[test]
fn posterior_of_a_segment_inside_a_string_multiplies() {
    let grammar = colloc();
    let lexicon = support::lexicon(
        &grammar,
        &[("C", "a b"), ("C", "a"), ("C", "b"), ("W", "a b"), ("W", "a"), ("W", "b")],
    );
    let mut case = Case::new(grammar, lexicon, 0);
    case.ln_weights.fill(0.0);
    // As one collocation, 3/4; as two, 1/4. Inside of `a b`: one word 0.4, two words 0.6.
    case.set(&[("C", "a b", 3.0), ("C", "a", 1.0), ("C", "b", 1.0)]);
    case.set(&[("W", "a b", 0.4), ("W", "a", 0.6), ("W", "b", 1.0)]);
    let sentence = support::tokens(&case.grammar, "a b");
    let spans = case.spans(&sentence, None);
    let expected =
        BTreeMap::from([((0, 1), 0.75 * 0.6 + 0.25), ((0, 2), 0.75 * 0.4), ((1, 2), 0.75 * 0.6 + 0.25)]);
    assert_eq!(spans.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    expected.iter().for_each(|(span, &value)| assert_close(spans[span], value, 1e-14, "span"));
    let decoded = case.decode(&sentence);
    check_spans(&case, &sentence, &decoded);
    assert_close(decoded.log_z, 4.0f64.ln(), 1e-14, "log Z");
    assert_eq!(decoded.segmentations, [[1, 2], [1, 2], [1, 2]]);
    assert_eq!(
        decoded.trees[0], "(S (Cs (C (Ws (W (Ls (L a))) (Ws (W (Ls (L b))))))))",
        "the better half of the collocation"
    );
}

#[test]
fn equal_sums_go_to_fewer_segments() {
    let grammar = support::grammar("1 1 S --> W\n1 1 S --> W W\nW --> L\n1 1 L --> a\n1 1 L --> a a\n");
    let lexicon = support::lexicon(&grammar, &[("W", "a"), ("W", "a a")]);
    let mut case = Case::new(grammar, lexicon, 0);
    case.ln_weights.fill(0.0);
    let sentence = support::tokens(&case.grammar, "a a");
    // One segment of posterior 2/3, or two of 1/3 each.
    case.set(&[("W", "a a", 2.0)]);
    assert_eq!(case.decode(&sentence).segmentations[1], [2]);
    // A little less, and two are better: 2 · 0.35 > 0.65.
    case.set(&[("W", "a a", 0.65 / 0.35)]);
    assert_eq!(case.decode(&sentence).segmentations[1], [1, 2]);
}

#[test]
fn segments_of_two_kinds() {
    let grammar = support::grammar(
        "1 1 S --> P W\n1 1 S --> W\nP --> L\nW --> L\n1 1 L --> a\n1 1 L --> a L\n1 1 L --> b\n1 1 L --> b L\n",
    );
    let lexicon = support::lexicon(&grammar, &[("P", "a"), ("W", "b"), ("W", "a b")]);
    let mut case = Case::new(grammar, lexicon, 0);
    case.segments.push(case.grammar.symbol("P").unwrap());
    case.ln_weights.fill(0.0);
    case.set(&[("W", "b", 3.0)]);
    let sentence = support::tokens(&case.grammar, "a b");
    assert_eq!(case.decode(&sentence).segmentations, [[1, 2], [1, 2], [1, 2]]);
}

#[test]
fn sentences_without_analysis_are_one_segment() {
    let grammar = colloc();
    let lexicon = support::lexicon(&grammar, &[("C", "a b"), ("W", "a b")]);
    let case = Case::new(grammar, lexicon, 1);
    let sentence = support::tokens(&case.grammar, "a b b");
    let decoded = case.decode(&sentence);
    assert_eq!(decoded.log_z, f64::NEG_INFINITY);
    assert_eq!(decoded.segmentations, [[3], [3], [3]]);
    assert_eq!(decoded.trees, ["(S a b b)", "(S a b b)"]);
    assert_eq!(decoded.spans, []);
    // Nor has a sentence whose strings all weigh nothing.
    let mut case = case;
    case.ln_weights[support::param(&case.grammar, &case.lexicon, "C", "a b").index()] = f64::NEG_INFINITY;
    let decoded = case.decode(&sentence[..2]);
    assert_eq!((decoded.log_z, decoded.segmentations), (f64::NEG_INFINITY, vec![vec![2]; 3]));
}

#[test]
fn open_decoding_analyses_unseen_words() {
    let grammar = colloc();
    let lexicon = support::lexicon(&grammar, &[("C", "a b"), ("W", "a b")]);
    let mut case = Case { open: true, ..Case::new(grammar, lexicon, 1) };
    case.ln_weights.fill(-1.0);
    case.ln_weights[0] = 0.0;
    let n = case.ln_weights.len();
    case.ln_weights[n - 2..].copy_from_slice(&[-4.0, -4.0]);
    // `a b` is known; `b b` is best written as one word that is not.
    let sentence = support::tokens(&case.grammar, "a b b b");
    let decoded = case.decode(&sentence);
    assert!(decoded.log_z.is_finite());
    assert_eq!(decoded.segmentations, [[2, 4], [2, 4], [2, 4]]);
    // The known word costs no escape.
    let known = case.decode(&sentence[..2]);
    let closed = Case { open: false, ..case }.decode(&sentence[..2]);
    assert!(known.log_z > closed.log_z && known.log_z < closed.log_z + 0.1);
    assert_eq!(known.trees[0], closed.trees[0]);
}

#[test]
fn many_sentences_are_as_one_by_one() {
    for case in cases() {
        let prepared = Prepared::new(Arc::new(case.grammar.clone()), Arc::new(case.lexicon.clone()));
        let with = Decode {
            weights: wide(&case.ln_weights),
            segments: case.segments.clone(),
            decoders: ALL.to_vec(),
            trees: true,
            spans: true,
            open: case.open,
        };
        let sentences = sentences(&case.grammar);
        let slices: Vec<&[SymbolId]> = sentences.iter().map(Vec::as_slice).collect();
        let singly: Vec<Decoded> = sentences.iter().map(|sentence| case.decode(sentence)).collect();
        assert_eq!(decode(&prepared, &with, &slices).unwrap(), singly);
    }
}

/// γ is of the discount before the last fit: a larger one makes uses come out below nothing.
#[test]
fn escape_is_a_probability_whatever_the_fit_has_made_of_the_discount() {
    let order = vec![ParamId(5), ParamId(6)];
    for gamma in [0.1, 0.4, 0.9] {
        let (gamma1, gamma2) = (vec![gamma; 2], vec![1.0; 2]);
        let stick = Stick {
            symbol: SymbolId(1),
            order: order.clone(),
            gamma1,
            gamma2,
            discount: 0.0,
            concentration: 1.0,
        };
        assert!((0.0..=1.0).contains(&stick.escape()), "{}", stick.escape());
    }
}

#[test]
fn escape_is_the_mass_of_new_tables() {
    use grammaton::models::adaptor::params::Params;
    let grammar = colloc();
    let lexicon = support::lexicon(&grammar, &[("C", "a"), ("W", "a"), ("W", "b")]);
    let stick = |number: usize| Stick {
        symbol: lexicon.sticks[number].symbol,
        order: lexicon.space(&grammar).stick(StickId(number as u32)).map(ParamId).collect(),
        gamma1: Vec::new(),
        gamma2: Vec::new(),
        discount: 0.25,
        concentration: 1.5,
    };
    let mut params = Params::new(&grammar, vec![stick(0), stick(1)]);
    let mut escapes_after = |uses: [f64; 3]| -> Vec<f64> {
        let mut counts = vec![0.0; lexicon.space(&grammar).n_params()];
        let n = counts.len();
        counts[n - 3..].copy_from_slice(&uses);
        params.update(&counts);
        let weights = params.decoding_weights(&grammar, &lexicon);
        weights[n..].iter().map(|weight| weight.to_f64()).collect()
    };
    let close = |found: &[f64], expected| support::assert_all_close(found, expected, 1e-14, "escape");
    close(&escapes_after([2.0, 3.0, 5.0]), &[1.75 / 3.5, 2.0 / 9.5]);
    // A string that is hardly used is hardly a table.
    close(&escapes_after([0.0, 0.2, 5.0]), &[1.0, (1.5 + 1.2 * 0.25) / 6.7]);
}
