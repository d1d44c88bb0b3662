//! Grammar files: what is read, what is refused and with which words, and print∘parse = identity.

use grammaton::grammar::auto::{Alphabet, FAMILY, auto};
use grammaton::grammar::syntax::{parse, print};
use grammaton::grammar::{Adaptor, Grammar, Rule, SymbolId};
use proptest::prelude::*;

fn refused(text: &str) -> String {
    parse(text, "g.gr").expect_err("this text should be refused").to_string()
}

fn accepted(text: &str) -> Grammar {
    parse(text, "g.gr").unwrap_or_else(|error| panic!("{error}")).0
}

fn notices(text: &str) -> Vec<String> {
    let (_, notices) = parse(text, "g.gr").unwrap_or_else(|error| panic!("{error}"));
    notices.iter().map(ToString::to_string).collect()
}

#[test]
fn numbers_before_the_parent_are_weight_discount_and_concentration() {
    let grammar = accepted(
        "1 1 S --> A B C D\n  2.5 A -->a\nB-x --> b\n0.5 0 10 B --> b\n3 C --> c\r\n1 .5 C --> c c\n\nC --> d\n\
         1 1 D --> B-x\n1 1 D --> #\n",
    );
    assert_eq!(grammar.symbols, ["S", "A", "B-x", "B", "C", "D", "a", "b", "c", "d", "#"]);
    assert_eq!(grammar.n_nonterminals, 6);
    let adaptor = |name: &str| grammar.adaptors[grammar.symbol(name).unwrap().index()];
    assert_eq!(adaptor("S"), None);
    assert_eq!(adaptor("A"), Some(Adaptor::default()));
    assert_eq!(adaptor("B"), Some(Adaptor { discount: Some(0.0), concentration: Some(10.0) }));
    assert_eq!(adaptor("C"), Some(Adaptor { discount: Some(0.5), concentration: None }));
    let alphas: Vec<f64> = grammar.rules.iter().map(|rule| rule.alpha).collect();
    assert_eq!(alphas, [1.0, 2.5, 1.0, 0.5, 3.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(
        grammar.adapted().map(|symbol| grammar.name(symbol)).collect::<Vec<_>>(),
        ["A", "B-x", "B", "C"]
    );
}

#[test]
fn rules_are_grouped_by_parent_and_terminals_numbered_along_them() {
    let grammar = accepted("1 1 S --> T\n1 1 T --> b\n1 1 S --> a\n1 1 T --> c\n");
    assert_eq!(grammar.symbols, ["S", "T", "a", "b", "c"]);
    assert_eq!(print(&grammar), "1 1 S --> T\n1 1 S --> a\n1 1 T --> b\n1 1 T --> c\n");
}

#[test]
fn comments_are_lines_that_begin_with_a_hash() {
    let grammar = accepted(
        "\u{feff}# a comment with --> an arrow\n   # another\n1 1 S --> # x\n1 1 S --> '\n1 1 S --> #\n",
    );
    assert_eq!(grammar.symbols, ["S", "#", "x", "'"]);
}

#[test]
fn a_hash_in_a_rule_is_a_symbol_a_comment_or_an_error() {
    for (text, expected) in [
        ("1 1 S --> W # one word\n1 1 W --> a", Some("g.gr:1:13: `# one word` is read as a comment")),
        ("1 1 S --> W #one\n1 1 W --> a", Some("g.gr:1:13: `#one` is read as a comment")),
        ("1 1 S --> W # W\n1 1 W --> #", None),
        ("1 1 S --> W # x\n1 1 # --> a\n1 1 W --> b", None),
    ] {
        let text = text.replace("1 1 # ", "1 1 '#' ");
        let noticed = notices(&text);
        assert_eq!(noticed.first().map(String::as_str), expected, "{text}");
        let has_hash = accepted(&text).symbols.iter().any(|name| name.starts_with('#'));
        assert_eq!(has_hash, expected.is_none(), "{text}");
    }
    for text in [
        "1 1 S --> W # S\n1 1 W --> a",
        "1 1 S --> W #\n1 1 W --> a",
        "1 1 S --> # a\n1 1 S --> b",
        "1 1 S --> a # a\n1 1 S --> a",
    ] {
        let refused = refused(text);
        assert!(
            refused.starts_with("g.gr:1:") && refused.contains("`#` may be a symbol or begin a comment"),
            "{refused}"
        );
    }
}

#[test]
fn rules_of_a_parent_that_disagree_on_its_adaptor_are_noticed() {
    let text = "1 1 S --> W\nW --> a\n1 1 W --> b W\n";
    assert!(
        notices(text)[0]
            .starts_with("g.gr:2:1: a rule of `W` has discount 1 (not adapted) and this one has none")
    );
    assert_eq!(accepted(text).adapted().count(), 0, "as in py-cfg");
}

#[test]
fn parents_may_be_quoted_or_escaped_but_children_are_literal() {
    let grammar =
        accepted("1 1 '3' --> \\a\n1 1 '3' --> 3W #b it's\n1 1 '3W' --> c\n\\#b --> d\nit\\'s --> e\n");
    assert_eq!(grammar.symbols, ["3", "3W", "#b", "it's", "\\a", "c", "d", "e"]);
    assert_eq!(accepted(&print(&grammar)), grammar);
}

#[test]
fn suspicious_values_are_noticed() {
    assert_eq!(notices("0 1 S --> a\n"), ["g.gr:1:1: a weight of 0 is read as the default, 1"]);
    assert_eq!(
        notices("1 1 S --> a\n2 1 S --> a\n"),
        ["g.gr:2:5: the same rule as in line 1; the weights add up to 3"]
    );
    assert_eq!(accepted("1 1 S --> a\n2 1 S --> a\n").rules[0].alpha, 3.0);
    assert_eq!(
        notices("1 0.5 S --> a\n1 1 S --> b\n"),
        ["g.gr:2:5: an earlier rule of `S` has another discount or concentration; this one holds"]
    );
    assert_eq!(accepted("1 0.5 S --> a\n1 1 S --> b\nS --> c").adaptors, [None]);
    assert!(notices("1 1 S --> 3W\n1 1 3W --> b\n")[0].starts_with("g.gr:2:5: `3W` is read as one name"));
    assert!(notices("1 1 S --> a | b\n")[0].starts_with("g.gr:1:13: `|` is read as a terminal"));
    assert!(
        notices("S --> a S\nS --> a\n")[0].starts_with("g.gr:1:1: the adapted nonterminal `S` occurs below")
    );
    assert_eq!(
        notices("1 1 S --> Words Wrds\n1 1 Words --> a\n"),
        ["g.gr:1:17: `Wrds` is never a parent, so it is a terminal; did you mean `Words`?"]
    );
    assert!(notices("1 1 S --> a S\n1 1 S --> a\n").is_empty());
}

#[test]
fn errors_name_the_place_and_the_way_out() {
    for (text, expected) in [
        ("", "g.gr:1:1: the grammar has no rules"),
        ("1 1 S --> a\nS -> b", "g.gr:2:3: found `->`, expected `-->`"),
        ("S--> x", "g.gr:1:1: `-->` must be preceded by white space, found `S-->`"),
        (
            "S --> a\n  what is this\n",
            "g.gr:2:3: expected `-->` after the parent, found none; write `Parent --> Child …`, or `#` before a comment",
        ),
        (" --> x", "g.gr:1:2: expected a parent before `-->`, found none"),
        (
            "1 --> x",
            "g.gr:1:1: expected a parent before `-->`, found the number 1; if it is a name, quote it: '1'",
        ),
        (
            "one S --> x",
            "g.gr:1:1: expected a number before the parent, found `one`; \
             a rule is `[weight [discount [concentration]]] Parent --> Child …`",
        ),
        (
            "1 1 1 1 S --> x",
            "g.gr:1:7: expected at most weight, discount and concentration before the parent, found `1` as well",
        ),
        ("1e999 S --> x", "g.gr:1:1: the weight must be finite, found 1e999"),
        ("1 nan S --> x", "g.gr:1:3: the discount must be finite, found nan"),
        (
            "1 -0.5 S --> x",
            "g.gr:1:3: the discount must be at least 0 and less than 1 (or 1: not adapted), found -0.5",
        ),
        ("1 0.5 0 S --> x", "g.gr:1:7: the concentration must be positive, found 0"),
        ("'S --> x", "g.gr:1:1: the quote is not closed; expected ' before the end of the line"),
        ("'S'x --> x", "g.gr:1:4: expected white space after the closing quote, found `x`"),
        ("S\\", "g.gr:1:2: expected a character after the backslash, found the end of the line"),
        ("'a b' --> x", "g.gr:1:1: the symbol name \"a b\" contains white space; choose a name without"),
        ("'' --> x", "g.gr:1:1: symbol 0 has an empty name"),
        ("é --> ", "g.gr:1:3: the right-hand side of `é` is empty, expected at least one symbol after `-->`"),
        (
            "S --> A b\n A --> A A\n",
            "g.gr:2:2: `A` derives no string of terminals, whichever of its rules is used; add a rule that ends",
        ),
        (
            "S --> a\nT --> b\n",
            "g.gr:2:1: `T` cannot be reached from the start symbol `S`; remove its rules, or use it in one",
        ),
        (
            "S --> A\n S --> a\nA --> B\nB --> b\nB --> A\n",
            "g.gr:3:1: unary cycle A → B → A: a symbol must not derive itself alone; remove one of these rules",
        ),
        (
            "S --> a\nS --> S\n",
            "g.gr:2:1: unary cycle S → S: a symbol must not derive itself alone; remove one of these rules",
        ),
        (
            "1e308 S --> a\n1e308 S --> a\n",
            "g.gr:1:7: the weight of a rule of `S` must be from 1e-100 to 1e100, found inf",
        ),
    ] {
        assert_eq!(refused(text), expected, "for {text:?}");
    }
}

/// Names of every kind that needs care: quotes, comments, arrows, numbers, brackets, letters beyond ASCII.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Z][a-z]{0,3}",
        "[0-9.+-]{1,3}",
        "['\"#%()|\\\\-]{1,3}",
        "\\PC{1,3}",
        Just("-->".to_owned()),
        Just("inf".to_owned()),
        Just("\u{feff}x".to_owned()),
    ]
    .prop_filter("names have no white space", |name| !name.contains(char::is_whitespace))
}

/// Valid grammars: nonterminal i has a rule to the next one and one to terminals, and may point to later ones, or
/// to any if there is a terminal too.
fn grammar() -> impl Strategy<Value = Grammar> {
    let names = prop::collection::btree_set(name(), 2..12);
    let numbers = prop_oneof![Just(1.0), 1e-9..1e9f64, Just(1e-300), Just(1e300), Just(5e-324)];
    let rule = (prop::collection::vec(any::<prop::sample::Index>(), 1..4), numbers);
    let adaptor = prop_oneof![
        Just(None),
        Just(Some((None, None))),
        (0.0..1.0f64).prop_map(|discount| Some((Some(discount), None))),
        (0.0..1.0f64, 1e-6..1e6f64).prop_map(|(d, c)| Some((Some(d), Some(c)))),
    ];
    let adaptors = prop::collection::vec(adaptor, 12);
    (names.prop_map(|set| set.into_iter().collect::<Vec<_>>()).prop_shuffle(), any::<prop::sample::Index>())
        .prop_flat_map(move |(names, at)| {
            let n = 1 + at.index(names.len() - 1);
            (Just(names), Just(n), prop::collection::vec(rule.clone(), n * 2), adaptors.clone())
        })
        .prop_map(|(names, n, drawn, adaptors)| {
            let terminals: Vec<&String> = names[n..].iter().collect();
            let mut symbols: Vec<String> = names[..n].to_vec();
            let mut rules: Vec<Rule> = Vec::new();
            for (place, (children, alpha)) in drawn.iter().enumerate() {
                let parent = place / 2;
                let mut right: Vec<&String> = Vec::new();
                if place % 2 == 0 && parent + 1 < n {
                    right.push(&names[parent + 1]);
                }
                right.push(terminals[children[0].index(terminals.len())]);
                right.extend(
                    children.iter().map(|child| &names[child.index(names.len())]).filter(|_| place % 2 == 1),
                );
                if place % 2 == 0 && parent + 1 == n {
                    right.truncate(1);
                }
                let children: Vec<SymbolId> = right
                    .into_iter()
                    .map(|name| {
                        let at = symbols.iter().position(|known| known == name).unwrap_or_else(|| {
                            symbols.push(name.clone());
                            symbols.len() - 1
                        });
                        SymbolId(at as u32)
                    })
                    .collect();
                let parent = SymbolId(parent as u32);
                if !rules.iter().any(|rule| rule.parent == parent && rule.children == children) {
                    rules.push(Rule { parent, children, alpha: *alpha });
                }
            }
            let adaptors = adaptors[..n]
                .iter()
                .map(|drawn| drawn.map(|(discount, concentration)| Adaptor { discount, concentration }))
                .collect();
            (symbols, n as u32, rules, adaptors)
        })
        .prop_filter("a symbol that begins with # is a parent or an only child", |(symbols, n, rules, _)| {
            (*n as usize..symbols.len())
                .filter(|&at| symbols[at].starts_with('#'))
                .all(|at| rules.iter().any(|rule: &Rule| rule.children == [SymbolId(at as u32)]))
        })
        .prop_filter_map("every nonterminal must be productive", |(symbols, n, rules, adaptors)| {
            Grammar::new(symbols, n, rules, adaptors).ok()
        })
}

proptest! {
    #[test]
    fn parsing_what_was_printed_gives_the_same_grammar(grammar in grammar()) {
        let text = print(&grammar);
        let (again, _) = parse(&text, "printed").map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(&again, &grammar, "{}", text);
        prop_assert_eq!(print(&again), text);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "([ \\t\\n\\PC]|-->|'|\\\\|S|1){0,40}") {
        if let Ok((grammar, _)) = parse(&text, "random") {
            prop_assert!(grammar.check().is_ok());
        }
    }

    #[test]
    fn made_grammars_read_back_whatever_the_symbols(
        terminals in prop::collection::btree_set(
            prop_oneof![name(), prop::sample::select(vec!["Word", "Char", "Char_", "Sentence"]).prop_map(str::to_owned)],
            1..9,
        ),
    ) {
        let terminals: Vec<String> = terminals.into_iter().collect();
        let vowels: Vec<bool> = (0..terminals.len()).map(|at| at % 3 == 1).collect();
        let stress_marks: Vec<bool> = (0..terminals.len()).map(|at| at == 2).collect();
        for (_, kind) in FAMILY {
            let of = Alphabet { symbols: &terminals, vowels: &vowels, stress_marks: &stress_marks, ..Alphabet::default() };
            let made = auto(kind, &of).unwrap();
            prop_assert_eq!(&parse(&print(&made.grammar), "made").unwrap().0, &made.grammar);
            prop_assert!(!made.segments.is_empty());
            prop_assert!(made.segments.iter().all(|&segment| made.grammar.is_adapted(segment)));
        }
    }
}
