//! Trees: analyses of sentences, printed and read in py-cfg's brackets.
//!
//! `(Sentence (Words (Word y u)))`; `( ) % ' \` and white space inside of names are preceded by a backslash.
//!
//! A tree is flat, its nodes in preorder, because list grammars make trees as deep as their sentences are long:
//! nothing here recurses.

use std::fmt::{self, Write as _};

/// A node of a [`Tree`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Name of the symbol, not empty.
    pub label: String,
    /// Number of children; 0 for a terminal.
    pub n_children: u32,
}

/// A labelled, ordered tree, printed and read in brackets.
///
/// ```
/// use grammaton::Tree;
///
/// let tree = Tree::parse("(S (Word t h e) (Word d o g))")?;
/// assert_eq!(tree.terminals().collect::<String>(), "thedog");
/// assert_eq!(tree.segment_ends(|label| label == "Word"), [3, 6]);
/// assert_eq!(tree.to_string(), "(S (Word t h e) (Word d o g))");
/// # Ok::<(), grammaton::grammar::TreeError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    nodes: Vec<Node>,
}

/// Why nodes or a text are not a tree.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TreeError {
    /// Too few nodes for the children announced, or none at all.
    #[error("the tree is incomplete: {missing} more nodes expected")]
    Incomplete {
        /// Number of missing nodes.
        missing: u64,
    },
    /// Nodes after the end of the tree.
    #[error("the tree ends before node {node}; expected one tree")]
    Surplus {
        /// The first node behind it.
        node: usize,
    },
    /// A node without a name.
    #[error("node {node} has an empty label")]
    EmptyLabel {
        /// The node.
        node: usize,
    },
    /// A text that breaks off.
    #[error("column {column}: the text ends inside of a tree, expected {expected}")]
    Unfinished {
        /// Column, in characters, counted from 1.
        column: usize,
        /// Expected continuation.
        expected: &'static str,
    },
    /// A character where another one belongs.
    #[error("column {column}: found `{found}`, expected {expected}")]
    Unexpected {
        /// Column, in characters, counted from 1.
        column: usize,
        /// The character.
        found: char,
        /// Expected text.
        expected: &'static str,
    },
}

impl Tree {
    /// Makes a tree of its nodes in preorder.
    ///
    /// # Errors
    /// [`TreeError`] if they are not exactly one tree.
    pub fn new(nodes: Vec<Node>) -> Result<Tree, TreeError> {
        let mut missing = 1u64;
        for (place, node) in nodes.iter().enumerate() {
            if missing == 0 {
                return Err(TreeError::Surplus { node: place });
            }
            if node.label.is_empty() {
                return Err(TreeError::EmptyLabel { node: place });
            }
            missing += u64::from(node.n_children);
            missing -= 1;
        }
        if missing > 0 { Err(TreeError::Incomplete { missing }) } else { Ok(Tree { nodes }) }
    }

    /// The nodes in preorder.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The terminals, left to right.
    pub fn terminals(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter(|node| node.n_children == 0).map(|node| node.label.as_str())
    }

    /// End positions of the segments, in terminals, ascending: the yields of the outermost nodes whose label
    /// `is_segment` accepts, and every terminal outside of those by itself.
    pub fn segment_ends(&self, is_segment: impl Fn(&str) -> bool) -> Vec<u32> {
        self.segments(is_segment).into_iter().map(|(end, _)| end).collect()
    }

    /// The segments of [`Tree::segment_ends`] with the labels of their nodes; `None` for a terminal by itself.
    pub fn segments(&self, is_segment: impl Fn(&str) -> bool) -> Vec<(u32, Option<&str>)> {
        let mut segments = Vec::new();
        let mut n_terminals = 0;
        let mut label = None;
        // Nodes of the current segment that are still to come.
        let mut inside = 0u64;
        for node in &self.nodes {
            let terminal = node.n_children == 0;
            n_terminals += u32::from(terminal);
            if inside > 0 {
                inside += u64::from(node.n_children);
                inside -= 1;
            } else if !terminal && is_segment(&node.label) {
                (inside, label) = (u64::from(node.n_children), Some(node.label.as_str()));
            } else if !terminal {
                continue;
            }
            if inside == 0 {
                segments.push((n_terminals, label.take()));
            }
        }
        segments
    }

    /// Reads one tree, as printed.
    ///
    /// # Errors
    /// [`TreeError`] with the column at which the text stops being a tree.
    pub fn parse(text: &str) -> Result<Tree, TreeError> {
        const CHILD: &str = "a label, `(` or `)`";
        let mut letters = text.chars().enumerate().map(|(at, letter)| (at + 1, letter)).peekable();
        let mut nodes: Vec<Node> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        // Whether the next word is the label of a parent rather than a terminal.
        let mut opened = false;
        let mut column = 0;
        while let Some(&(at, letter)) = letters.peek() {
            column = at;
            let complete = open.is_empty() && !nodes.is_empty();
            if letter.is_whitespace() {
                letters.next();
            } else if complete {
                return Err(TreeError::Unexpected { column, found: letter, expected: "the end of the tree" });
            } else if matches!(letter, '(' | ')') && opened {
                return Err(TreeError::Unexpected { column, found: letter, expected: "a label after `(`" });
            } else if letter == '(' {
                letters.next();
                opened = true;
            } else if letter == ')' {
                letters.next();
                match open.pop() {
                    Some(node) if nodes[node].n_children > 0 => {}
                    _ => return Err(TreeError::Unexpected { column, found: ')', expected: "a child" }),
                }
            } else {
                let mut label = String::new();
                while let Some(&(at, letter)) = letters.peek() {
                    column = at;
                    if letter.is_whitespace() || matches!(letter, '(' | ')') {
                        break;
                    }
                    letters.next();
                    let literal = if letter == '\\' {
                        letters.next().map(|(_, escaped)| escaped)
                    } else {
                        Some(letter)
                    };
                    let expected = "a character after the backslash";
                    label.push(literal.ok_or(TreeError::Unfinished { column, expected })?);
                }
                if let Some(&parent) = open.last() {
                    nodes[parent].n_children += 1;
                }
                if opened {
                    open.push(nodes.len());
                }
                nodes.push(Node { label, n_children: 0 });
                opened = false;
            }
        }
        if opened || !open.is_empty() || nodes.is_empty() {
            return Err(TreeError::Unfinished { column: column + 1, expected: CHILD });
        }
        Tree::new(nodes)
    }

    /// Writes brackets, the letters of labels as `write_letter` does.
    pub fn write_brackets<W: fmt::Write>(
        &self,
        f: &mut W,
        write_letter: impl Fn(&mut W, char) -> fmt::Result,
    ) -> fmt::Result {
        // Children still to come, of each node that is open.
        let mut open: Vec<u32> = Vec::new();
        for (place, node) in self.nodes.iter().enumerate() {
            if place > 0 {
                f.write_char(' ')?;
            }
            if node.n_children > 0 {
                f.write_char('(')?;
            }
            node.label.chars().try_for_each(|letter| write_letter(f, letter))?;
            if node.n_children > 0 {
                open.push(node.n_children);
                continue;
            }
            while let Some(left) = open.last_mut() {
                *left -= 1;
                if *left > 0 {
                    break;
                }
                open.pop();
                f.write_char(')')?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_brackets(f, |f, letter| {
            if needs_backslash(letter) {
                f.write_char('\\')?;
            }
            f.write_char(letter)
        })
    }
}

/// Puts a label behind a text, as trees are printed.
pub fn push_label(text: &mut String, label: &str) {
    for letter in label.chars() {
        if needs_backslash(letter) {
            text.push('\\');
        }
        text.push(letter);
    }
}

fn needs_backslash(letter: char) -> bool {
    matches!(letter, '(' | ')' | '%' | '\'' | '\\') || letter.is_whitespace()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tree(text: &str) -> Tree {
        Tree::parse(text).unwrap_or_else(|error| panic!("{error} in {text:?}"))
    }

    #[test]
    fn brackets_read_and_print() {
        let text = "(Sentence (Words (Word y u) (Words (Word \\( \\'))))";
        let tree = tree(text);
        assert_eq!(tree.to_string(), text);
        assert_eq!(tree.terminals().collect::<Vec<_>>(), ["y", "u", "(", "'"]);
        assert_eq!(tree.nodes()[1], Node { label: "Words".to_owned(), n_children: 2 });
        assert_eq!(Tree::parse(" ( A  b(C d)\n) ").unwrap().to_string(), "(A b (C d))");
        assert_eq!(Tree::parse("a").unwrap().to_string(), "a");
    }

    #[test]
    fn invalid_trees_are_refused_by_column() {
        for (text, expected) in [
            ("", "column 1: the text ends inside of a tree, expected a label, `(` or `)`"),
            ("(A b", "column 5: the text ends inside of a tree, expected a label, `(` or `)`"),
            ("(A)", "column 3: found `)`, expected a child"),
            ("((A b))", "column 2: found `(`, expected a label after `(`"),
            ("(A b) c", "column 7: found `c`, expected the end of the tree"),
            (")", "column 1: found `)`, expected a child"),
            ("(A b\\", "column 5: the text ends inside of a tree, expected a character after the backslash"),
        ] {
            assert_eq!(Tree::parse(text).unwrap_err().to_string(), expected, "for {text:?}");
        }
        let node = |n_children| Node { label: "A".to_owned(), n_children };
        assert_eq!(Tree::new(vec![node(2), node(0)]), Err(TreeError::Incomplete { missing: 1 }));
        assert_eq!(Tree::new(vec![node(0), node(0)]), Err(TreeError::Surplus { node: 1 }));
    }

    #[test]
    fn segments_are_the_outermost_and_the_rest_symbol_by_symbol() {
        let ends = |text| tree(text).segment_ends(|label| label == "Word");
        assert_eq!(ends("(S (Word a b) (Word c))"), [2, 3]);
        assert_eq!(ends("(S (Word a (Word b) (X c)) d e (Word (Word f) g))"), [3, 4, 5, 7]);
        assert_eq!(ends("(Word (Word a) b)"), [2]);
        assert_eq!(ends("(S a)"), [1]);
        let labelled = tree("(S (Stem a (Affix b)) c (Affix d) (Stem e f))");
        let segments = labelled.segments(|label| ["Stem", "Affix"].contains(&label));
        assert_eq!(segments, [(2, Some("Stem")), (3, None), (4, Some("Affix")), (6, Some("Stem"))]);
    }

    #[test]
    fn a_deep_tree_needs_no_deep_stack() {
        let depth = 300_000;
        let mut nodes = vec![Node { label: "A".to_owned(), n_children: 1 }; depth];
        nodes.push(Node { label: "b".to_owned(), n_children: 0 });
        let deep = Tree::new(nodes).unwrap();
        assert_eq!(Tree::parse(&deep.to_string()).unwrap(), deep);
    }

    fn any_tree() -> impl Strategy<Value = Tree> {
        let label = prop_oneof!["[A-Z][a-z]{0,3}", "[()%'\\\\ \t\u{3000}#]{1,3}", "\\PC{1,3}"];
        prop::collection::vec((label, 0..4u32), 1..20).prop_map(|drawn| {
            let n = drawn.len() as u32;
            let mut missing = 1;
            let mut nodes = Vec::new();
            for (place, (label, wanted)) in (0..).zip(drawn) {
                if missing == 0 {
                    break;
                }
                let left = n - place - 1;
                let least = if missing == 1 { left.min(1) } else { 0 };
                let n_children = wanted.min(left + 1 - missing).max(least);
                missing += n_children;
                missing -= 1;
                nodes.push(Node { label, n_children });
            }
            Tree::new(nodes).expect("made to fit")
        })
    }

    proptest! {
        #[test]
        fn parsing_what_was_printed_gives_the_same_tree(tree in any_tree()) {
            prop_assert_eq!(Tree::parse(&tree.to_string()).unwrap(), tree);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[()A\\\\ ]{0,20}") {
            let _ = Tree::parse(&text);
        }
    }
}
