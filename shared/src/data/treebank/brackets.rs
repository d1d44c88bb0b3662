//! Brackets of the Penn Treebank, read and written.
//!
//! `(S (NP (NN dog)) (VP (VBZ barks)))`: a node is a label and either one word or nodes. A tree may run over several lines,
//! and its top label may be empty, as in the combined files: `( (S …))`. `()` and `(())` stand for a sentence without a tree.
//!
//! Unlike py-cfg's brackets ([`Tree::parse`]) these know no escapes: a backslash is a character of the word, and the brackets
//! of a text are the words `-LRB-` and `-RRB-`. Byte-order marks, also of files that were joined, are white space.
//!
//! A word may be in brackets of its own, `(NN (dog))`, unless it is also the label of a node of the text: then `(S (NP))` has an empty node, an error.

use rustc_hash::FxHashSet;

use crate::grammar::tree::{Node, Tree};

use super::ROOT;
use super::binary::INTERMEDIATE;

/// Text in a file where a tree is expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The line on which it begins, from 1.
    pub line: u32,
    /// The tree, its top labelled [`ROOT`] if it had no label; none for `(())`.
    pub tree: Option<Tree>,
}

/// Error in a text of trees: its place and kind.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{source_name}:{line}:{column}: found {found}, expected {expected}")]
pub struct TreebankError {
    /// Name of the file.
    pub source_name: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, in characters, from 1.
    pub column: u32,
    /// The text found.
    pub found: String,
    /// The text expected, and the way out.
    pub expected: &'static str,
}

/// A place in a text.
#[derive(Clone, Copy)]
struct Place {
    line: u32,
    column: u32,
}

/// A node that has begun.
struct Open<'t> {
    node: usize,
    label: &'t str,
    place: Place,
    has_word: bool,
}

const NO_WORD: &str = "a word or `(`";

/// Reads all trees of a text; `source_name` is what messages call it.
///
/// # Errors
/// [`TreebankError`] at the first thing that does not fit.
pub fn read(text: &str, source_name: &str) -> Result<Vec<Entry>, TreebankError> {
    let (entries, faults) = read_sound(text, source_name)?;
    match faults.into_iter().next() {
        Some(fault) => Err(fault),
        None => Ok(entries),
    }
}

/// Reads the trees of a text that are sound, and says what is wrong with each of the others, in their order. A tree is what lies between brackets that
/// match.
///
/// # Errors
/// [`TreebankError`] if the last tree has no end, since it may hold trees that follow.
pub fn read_sound(text: &str, source_name: &str) -> Result<(Vec<Entry>, Vec<TreebankError>), TreebankError> {
    let error = |Fault(Place { line, column }, found, expected): Fault| TreebankError {
        source_name: source_name.to_owned(),
        line,
        column,
        found,
        expected,
    };
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    let mut labels: FxHashSet<&str> = FxHashSet::default();
    for item in items(text) {
        match tree(&item, &mut labels) {
            Ok(tree) => found.push(tree),
            Err(fault) => faults.push(error(fault)),
        }
        if !is_whole(&item) {
            return Err(faults.swap_remove(0));
        }
    }
    let mut entries = Vec::with_capacity(found.len());
    for (entry, bracketed) in found {
        match bracketed.iter().find(|(_, word)| labels.contains(word)) {
            Some(&(place, _)) => faults.push(error(Fault(place, "`)`".to_owned(), NO_WORD))),
            None => entries.push(entry),
        }
    }
    faults.sort_by_key(|fault| (fault.line, fault.column));
    Ok((entries, faults))
}

type Token<'t> = (Place, &'t str);

/// Brackets that match with all between them, and what stands outside of brackets.
fn items(text: &str) -> impl Iterator<Item = Vec<Token<'_>>> {
    let mut tokens = tokens(text).peekable();
    std::iter::from_fn(move || {
        tokens.peek()?;
        let mut depth = 0;
        let mut item = Vec::new();
        for (place, token) in tokens.by_ref() {
            item.push((place, token));
            depth += depth_of(token);
            if depth <= 0 {
                break;
            }
        }
        Some(item)
    })
}

fn depth_of(token: &str) -> i32 {
    match token {
        "(" => 1,
        ")" => -1,
        _ => 0,
    }
}

/// Whether the brackets that an item opens are closed; if not, its tree has a fault.
fn is_whole(item: &[Token<'_>]) -> bool {
    item.iter().map(|(_, token)| depth_of(token)).sum::<i32>() <= 0
}

/// A place where something else was expected: what was found, and what was expected.
struct Fault(Place, String, &'static str);

/// Reads the tree of an item, adds to the labels of the text, and returns the words in brackets of their own as well.
fn tree<'t>(item: &[Token<'t>], labels: &mut FxHashSet<&'t str>) -> Result<(Entry, Vec<Token<'t>>), Fault> {
    let error = |place: Place, found: String, expected| Err(Fault(place, found, expected));
    let quoted = |token: &str| format!("`{token}`");
    let entry = |tree| Entry { line: item[0].0.line, tree };
    let mut nodes: Vec<Node> = Vec::new();
    let mut open: Vec<Open<'_>> = Vec::new();
    // The bracket just before, if no label has followed yet.
    let mut bracket: Option<Place> = None;
    // Whether the tree so far is `(()`.
    let mut vacant = false;
    let mut bracketed: Vec<Token<'t>> = Vec::new();
    for &(place, token) in item {
        let (top, unlabelled) = (open.is_empty(), bracket.is_some());
        if vacant && token != ")" {
            return error(place, quoted(token), "`)` after `(()`, which is no tree");
        }
        match token {
            "(" if unlabelled && !top => return error(place, quoted(token), "a label after `(`"),
            "(" => {
                if let Some(place) = bracket {
                    nodes.push(Node { label: ROOT.to_owned(), n_children: 0 });
                    open.push(Open { node: 0, label: ROOT, place, has_word: false });
                } else if let Some(parent) = open.last() {
                    if parent.has_word {
                        return error(place, quoted(token), "`)`: a word is the only child of its tag");
                    }
                    let label = &nodes[parent.node].label;
                    if label.starts_with(INTERMEDIATE) {
                        let expected = "another label: `@` marks what binarisation puts in; rename it";
                        return error(parent.place, quoted(label), expected);
                    }
                }
                bracket = Some(place);
            }
            ")" if unlabelled && top => return Ok((entry(None), bracketed)),
            ")" if unlabelled && nodes.len() == 1 && nodes[0].n_children == 0 && nodes[0].label == ROOT => {
                bracket = None;
                vacant = true;
            }
            ")" if unlabelled => return error(place, quoted(token), "a label after `(`"),
            ")" => match open.pop() {
                None => return error(place, quoted(token), "`(`: no tree is open"),
                Some(_) if vacant => return Ok((entry(None), bracketed)),
                Some(node) if nodes[node.node].n_children == 0 => match open.last_mut() {
                    Some(tag) if nodes[tag.node].n_children == 1 && nodes[tag.node].label != ROOT => {
                        tag.has_word = true;
                        bracketed.push((place, node.label));
                    }
                    _ => return error(place, quoted(token), NO_WORD),
                },
                Some(_) if open.is_empty() => {
                    let tree = Tree::new(nodes).expect("brackets and children were counted");
                    return Ok((entry(Some(tree)), bracketed));
                }
                Some(_) => {}
            },
            label if unlabelled => {
                if let Some(parent) = open.last() {
                    nodes[parent.node].n_children += 1;
                    labels.insert(parent.label);
                }
                bracket = None;
                open.push(Open { node: nodes.len(), label, place, has_word: false });
                nodes.push(Node { label: label.to_owned(), n_children: 0 });
            }
            word => match open.last_mut() {
                None => return error(place, quoted(word), "`(`: no tree is open"),
                Some(tag) if nodes[tag.node].n_children > 0 => {
                    return error(place, quoted(word), "`(` or `)`: a word is the only child of its tag");
                }
                Some(tag) => {
                    tag.has_word = true;
                    labels.insert(tag.label);
                    nodes[tag.node].n_children = 1;
                    nodes.push(Node { label: word.to_owned(), n_children: 0 });
                }
            },
        }
    }
    error(item[0].0, "a tree without an end".to_owned(), "as many `)` as `(`")
}

/// White space, or a byte-order mark.
fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || letter == '\u{feff}'
}

/// Brackets, and what stands between brackets and white space.
fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut place = Place { line: 1, column: 1 };
    let mut rest = text;
    std::iter::from_fn(move || {
        while let Some(letter) = rest.chars().next().filter(|&letter| is_blank(letter)) {
            rest = &rest[letter.len_utf8()..];
            place.column += 1;
            if letter == '\n' {
                place = Place { line: place.line + 1, column: 1 };
            }
        }
        let is_bracket = |letter| matches!(letter, '(' | ')');
        let first = rest.chars().next()?;
        let length = if is_bracket(first) {
            1
        } else {
            rest.find(|letter: char| is_bracket(letter) || is_blank(letter)).unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(length);
        let begin = place;
        rest = after;
        place.column += token.chars().count() as u32;
        Some((begin, token))
    })
}

/// A tree on one line; brackets in its words are written `-LRB-` and `-RRB-`, white space `_`.
pub fn line(tree: &Tree) -> String {
    let mut text = String::new();
    let letter = |text: &mut String, letter: char| {
        match letter {
            '(' => text.push_str("-LRB-"),
            ')' => text.push_str("-RRB-"),
            _ if letter.is_whitespace() => text.push('_'),
            _ => text.push(letter),
        }
        Ok(())
    };
    tree.write_brackets(&mut text, letter).expect("a string takes all that is written");
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(text: &str) -> Vec<Option<String>> {
        read(text, "trees").unwrap().iter().map(|entry| entry.tree.as_ref().map(line)).collect()
    }

    #[test]
    fn byte_order_marks_and_line_ends_of_any_system_are_blank() {
        let plain = lines("(S (N dog))\n(S (N cat))\n");
        for text in [
            "\u{feff}(S (N dog))\n(S (N cat))\n",
            "(S (N dog))\n\u{feff}(S (N cat))\n\u{feff}",
            "\u{feff}(S\r\n(N dog))\r\n(S (N cat))\r\n",
            "(S (N dog))\r(S (N cat))\r",
        ] {
            assert_eq!(lines(text), plain, "{text:?}");
        }
    }

    #[test]
    fn words_may_have_brackets_of_their_own() {
        let expected = lines("(S (NP (NN dog)) (VP (VB barks)) (. .))");
        assert_eq!(lines("(S (NP (NN (dog))) (VP (VB (barks))) (. .))"), expected);
        for text in ["(S (NP (NN dog)) (VP (NP)))", "(S (VP (NP)))\n(S (NP x))", "((dog))", "(dog)"] {
            let error = read(text, "trees").unwrap_err().to_string();
            assert!(error.contains("found `)`, expected a word or `(`"), "{text}: {error}");
        }
        let twice = read("(S (NN (dog) (cat)))", "trees").unwrap_err().to_string();
        assert!(twice.contains("a word is the only child of its tag"), "{twice}");
    }

    #[test]
    fn trees_run_over_lines_and_may_lack_a_top_label() {
        let text = "( (S\n    (NP (NN dog) )\n (VP (VBZ 'barks\\/') )))\n(NN x) () (())\n( () )";
        let found = lines(text);
        let tree = |text: &str| Some(text.to_owned());
        let first = tree("(ROOT (S (NP (NN dog)) (VP (VBZ 'barks\\/'))))");
        assert_eq!(found, [first, tree("(NN x)"), None, None, None]);
        let at: Vec<u32> = read(text, "trees").unwrap().iter().map(|entry| entry.line).collect();
        assert_eq!(at, [1, 4, 4, 4, 5]);
        assert!(read(" \n", "trees").unwrap().is_empty());
    }

    #[test]
    fn invalid_trees_are_refused_by_line_and_column() {
        for (text, expected) in [
            ("\n  x", "t:2:3: found `x`, expected `(`: no tree is open"),
            ("(A b))", "t:1:6: found `)`, expected `(`: no tree is open"),
            ("(A\n(B c", "t:1:1: found a tree without an end, expected as many `)` as `(`"),
            ("(", "t:1:1: found a tree without an end, expected as many `)` as `(`"),
            ("(A b c)", "t:1:6: found `c`, expected `(` or `)`: a word is the only child of its tag"),
            ("(A (B c) d)", "t:1:10: found `d`, expected `(` or `)`: a word is the only child of its tag"),
            ("(A b (C d))", "t:1:6: found `(`, expected `)`: a word is the only child of its tag"),
            ("(A ((B c)))", "t:1:5: found `(`, expected a label after `(`"),
            ("(A (B c) ())", "t:1:11: found `)`, expected a label after `(`"),
            ("(A )", "t:1:4: found `)`, expected a word or `(`"),
            ("(() (A b))", "t:1:5: found `(`, expected `)` after `(()`, which is no tree"),
            (
                "(A (@A (B c) (B c)))",
                "t:1:5: found `@A`, expected another label: `@` marks what binarisation puts in; rename it",
            ),
        ] {
            assert_eq!(read(text, "t").unwrap_err().to_string(), expected, "for {text:?}");
        }
    }

    #[test]
    fn trees_with_faults_are_left_out_if_they_have_an_end() {
        let text = "(S (N a))\n(S (N a) b)\n(S (N c)) )\n(S (V (N)))\n()\n(S (N d))";
        let (entries, faults) = read_sound(text, "t").unwrap();
        let at: Vec<u32> = entries.iter().map(|entry| entry.line).collect();
        assert_eq!(at, [1, 3, 5, 6]);
        let at: Vec<(u32, u32)> = faults.iter().map(|fault| (fault.line, fault.column)).collect();
        assert_eq!(at, [(2, 10), (3, 11), (4, 9)]);
        let error = read_sound("(S (N a))\n(S (N b)\n(S (N c))", "t").unwrap_err();
        assert_eq!((error.line, error.found.as_str()), (2, "a tree without an end"));
    }

    #[test]
    fn brackets_and_spaces_in_words_are_spelled_out() {
        let nodes = vec![
            Node { label: "A".to_owned(), n_children: 1 },
            Node { label: "( )".to_owned(), n_children: 0 },
        ];
        assert_eq!(line(&Tree::new(nodes).unwrap()), "(A -LRB-_-RRB-)");
    }

    proptest! {
        #[test]
        fn reading_what_was_written_gives_the_same_trees(text in "[()A\\\\@ \n]{0,30}") {
            // Most such texts are no trees; none may make the reader panic.
            if let Ok(entries) = read(&text, "t") {
                let trees: Vec<Tree> = entries.into_iter().filter_map(|entry| entry.tree).collect();
                let written: Vec<String> = trees.iter().map(line).collect();
                let again = read(&written.join("\n"), "t").unwrap();
                let again: Vec<Tree> = again.into_iter().filter_map(|entry| entry.tree).collect();
                prop_assert_eq!(again, trees);
            }
        }
    }
}
