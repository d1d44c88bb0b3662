//! Nonterminals that rewrite to every substring of the corpus.

use std::sync::Arc;

use grammaton::forest::Prepared;
use grammaton::forest::binary::Adapted;
use grammaton::forest::build::Builder;
use grammaton::forest::inside::{Counts, Scratch, Weights, expect, real};
use grammaton::grammar::ParamId;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::grammar::{Grammar, RuleId, StickId, SymbolId, syntax};
use grammaton::num::Wide;

const VERBS: &str = "1 1 Word --> V\n1 1 Word --> V M\n1 1 Word --> SM V M\n\
                     0.1 1 SM --> <substrings>\n0.2 1 V --> <substrings>\n0.3 1 M --> <substrings>\n";

fn prepared(text: &str, words: &[&str]) -> (Prepared, Vec<Vec<SymbolId>>) {
    let letters: Vec<String> = words.concat().chars().map(String::from).collect();
    let mut distinct: Vec<&str> = letters.iter().map(String::as_str).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let grammar = syntax::parse(text, "g").unwrap().0.with_vocabulary(distinct);
    grammar.check().unwrap();
    let tokens = |word: &&str| word.chars().map(|c| grammar.symbol(&c.to_string()).unwrap()).collect();
    let sentences: Vec<Vec<SymbolId>> = words.iter().map(tokens).collect();
    let lexicon = Lexicon::substrings(&grammar, &sentences, usize::MAX).unwrap();
    lexicon.check(&grammar).unwrap();
    (Prepared::new(grammar, Arc::new(lexicon)), sentences)
}

#[test]
fn every_nonterminal_has_every_substring_once() {
    let (prepared, _) = prepared(VERBS, &["aab", "ab"]);
    let (grammar, lexicon) = (&prepared.grammar, &prepared.lexicon);
    assert_eq!(lexicon.sticks.len(), 3);
    let printed = |string: &[SymbolId]| string.iter().map(|&s| grammar.name(s)).collect::<String>();
    let strings: Vec<String> = lexicon.sticks[0].strings.iter().map(printed).collect();
    assert_eq!(strings, ["a", "aa", "aab", "ab", "b"]);
    assert_eq!(
        lexicon.space(grammar).n_params(),
        1 + 6 + 15,
        "as many productions as the paper counts, and V → <substrings>"
    );
}

#[test]
fn forest_holds_every_way_to_cut() {
    let (prepared, sentences) = prepared(VERBS, &["abca"]);
    let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
    let forest = builder.build(0, &sentences[0]).unwrap().unwrap();
    let n_params = prepared.space().n_params();
    let weights = vec![Wide::ONE; n_params];
    let real = real(&weights);
    let mut uses = vec![0.0; n_params];
    let mut counts = Counts { uses: &mut uses, losses: &mut [] };
    let z =
        expect(&forest, &Weights { wide: &weights, real: &real }, 1.0, &mut counts, &mut Scratch::default());
    // One part, 3 places for one cut, 3 pairs of places for two.
    assert!((z.to_f64() - 7.0).abs() < 1e-12);
    assert!((uses[ParamId::of_rule(RuleId(1)).index()] - 3.0 / 7.0).abs() < 1e-12);
    let whole = prepared.strings.param(StickId(1), &sentences[0]).unwrap();
    assert!((uses[whole.index()] - 1.0 / 7.0).abs() < 1e-12);
    let strings: f64 = uses[prepared.grammar.space().n_params()..].iter().sum();
    assert!((strings - (1.0 + 2.0 * 3.0 + 3.0 * 3.0) / 7.0).abs() < 1e-12);
}

#[test]
fn same_forest_whether_adaptors_expand_or_not() {
    let (prepared, sentences) = prepared(VERBS, &["abca"]);
    let build = |mode| {
        Builder::new(&prepared.binary, &prepared.strings, mode).build(0, &sentences[0]).unwrap().unwrap()
    };
    assert_eq!(build(Adapted::Strings).edges, build(Adapted::Rules).edges);
}

#[test]
fn unseen_strings_take_the_escape() {
    let (prepared, sentences) = prepared(VERBS, &["ab", "b"]);
    let unseen = [sentences[1].clone(), sentences[0].clone()].concat(); // bab
    let strings = &prepared.strings;
    assert!(Builder::new(&prepared.binary, strings, Adapted::Strings).build(0, &unseen).unwrap().is_some());
    let escape =
        |edge: &grammaton::forest::Edge| prepared.space().escape_of(ParamId(edge.param)).map(|stick| stick.0);
    let forest = Builder::open(&prepared.binary, strings).build(0, &unseen).unwrap().unwrap();
    let escapes: Vec<u32> = forest.edges.iter().filter_map(escape).collect();
    // `bab` alone, and `ba` before M.
    assert_eq!(escapes.iter().filter(|&&stick| stick == 1).count(), 2);
    assert!(escapes.iter().all(|&stick| stick < 3));
}

#[test]
fn misplaced_substrings_are_refused() {
    for text in [
        "1 1 S --> V\n1 1 V --> <substrings> a",
        "1 1 S --> V\n1 1 V --> <substrings>\n1 1 V --> a",
        "1 1 S --> V\nV --> <substrings>",
    ] {
        let error = syntax::parse(text, "g").unwrap_err().to_string();
        assert!(error.contains("g:2:") && error.contains("`1 1 V --> <substrings>`"), "{error}");
    }
}

#[test]
fn terminals_beside_the_rules_need_substrings() {
    let open = syntax::parse("1 1 S --> V\n1 1 V --> <substrings>\n", "g").unwrap().0;
    let named = open.with_vocabulary(["a", "b", "a"]);
    assert_eq!(named.symbols, ["S", "V", "<substrings>", "a", "b"], "each name once");
    named.check().unwrap();
    let (grammar, _): (Grammar, _) = syntax::parse("1 1 S --> a\n", "g").unwrap();
    assert_eq!(grammar.clone().with_vocabulary(["b"]), grammar);
    let more = Grammar { symbols: vec!["S".into(), "a".into(), "b".into()], ..grammar };
    assert!(more.check().is_err());
}
