//! Drawing of a parse tree as SVG.
//!
//! The drawing has the root, the adapted nonterminals and the text below them. The nodes between them (lists of words, lists of letters)
//! are left out.

use grammaton::grammar::tree::Tree;
use maud::{Markup, html};
use unicode_width::UnicodeWidthStr as _;

use super::markup::Tenths;

/// A node of the drawing.
#[derive(Clone, PartialEq, Debug)]
pub enum Node {
    /// A nonterminal and its children.
    Inner(String, Vec<Node>),
    /// Neighbouring leaves.
    Leaf(Vec<String>),
}

/// Reduces `tree` to the root and the nonterminals for which `keep` holds. `None` if they nest deeper than `max_depth`, or the tree is a
/// single word.
pub fn drawn(tree: &Tree, keep: &dyn Fn(&str) -> bool, max_depth: usize) -> Option<Node> {
    // Open nodes: number of missing children, and for kept nodes their label and children so far.
    let mut open: Vec<(u32, bool)> = Vec::new();
    let mut kept: Vec<(String, Vec<Node>)> = Vec::new();
    for node in tree.nodes() {
        let keeps = node.n_children > 0 && (open.is_empty() || keep(&node.label));
        if keeps {
            kept.push((node.label.clone(), Vec::new()));
        }
        if node.n_children > 0 {
            open.push((node.n_children, keeps));
        } else {
            let (_, siblings) = kept.last_mut()?;
            match siblings.last_mut() {
                Some(Node::Leaf(leaves)) => leaves.push(node.label.clone()),
                _ => siblings.push(Node::Leaf(vec![node.label.clone()])),
            }
        }
        if kept.len() > max_depth {
            return None;
        }
        // A terminal completes itself, and every node whose last child it is.
        let mut ended = node.n_children == 0;
        while ended {
            let Some((missing, keeps)) = open.last_mut() else { break };
            *missing -= 1;
            ended = *missing == 0;
            if ended && *keeps && open.len() > 1 {
                let (label, children) = kept.pop()?;
                kept.last_mut()?.1.push(Node::Inner(label, children));
            }
            if ended {
                open.pop();
            }
        }
    }
    kept.pop().map(|(label, children)| Node::Inner(label, children))
}

/// Number of leaves in the drawing.
pub fn n_leaves(node: &Node) -> usize {
    match node {
        Node::Leaf(_) => 1,
        Node::Inner(_, children) => children.iter().map(n_leaves).sum(),
    }
}

const LEVEL: f64 = 46.0;
const LETTER: f64 = 8.6;
const GAP: f64 = 18.0;

/// Draws the tree; leaves are joined by `separator`.
pub fn svg(root: &Node, separator: &str) -> Markup {
    let mut drawing = Drawing { parts: Vec::new(), separator, deepest: 0.0 };
    let (width, _) = drawing.node(root, 0.0, 0);
    let (width, height) = (format!("{width:.0}"), format!("{:.0}", drawing.deepest + 12.0));
    html! {
        svg.tree viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height)
            role="img" aria-label="parse tree" {
            @for part in drawing.parts { (part) }
        }
    }
}

struct Drawing<'a> {
    parts: Vec<Markup>,
    separator: &'a str,
    deepest: f64,
}

impl Drawing<'_> {
    /// Draws `node` to the right of `left`; returns its width and the x of its middle.
    fn node(&mut self, node: &Node, left: f64, depth: usize) -> (f64, f64) {
        let y = 20.0 + depth as f64 * LEVEL;
        self.deepest = self.deepest.max(y);
        let (class, label) = match node {
            Node::Leaf(leaves) => ("leaf", leaves.join(self.separator)),
            Node::Inner(label, _) => ("label", label.clone()),
        };
        let own = label.width() as f64 * LETTER + GAP;
        let children = if let Node::Inner(_, children) = node { &children[..] } else { &[] };
        let below: f64 = children.iter().map(|child| breadth(child, self.separator)).sum();
        let mut at = left + (own - below).max(0.0) / 2.0;
        let mut middles = Vec::new();
        for child in children {
            let (width, middle) = self.node(child, at, depth + 1);
            at += width;
            middles.push(middle);
        }
        let width = own.max(below);
        let middle = match (middles.first(), middles.last()) {
            (Some(first), Some(last)) => (first + last) / 2.0,
            _ => left + width / 2.0,
        };
        for below in middles {
            let (from, to) = (y + 7.0, y + LEVEL - 15.0);
            let bend = (from + to) / 2.0;
            let line = format!(
                "M{middle:.1} {from:.1}C{middle:.1} {bend:.1} {below:.1} {bend:.1} {below:.1} {to:.1}"
            );
            self.parts.push(html! { path.edge d=(line) {} });
        }
        self.parts.push(html! {
            text class=(class) x=(Tenths(middle)) y=(Tenths(y)) text-anchor="middle" { (label) }
        });
        (width, middle)
    }
}

fn breadth(node: &Node, separator: &str) -> f64 {
    match node {
        Node::Leaf(leaves) => leaves.join(separator).width() as f64 * LETTER + GAP,
        Node::Inner(label, children) => {
            let below: f64 = children.iter().map(|child| breadth(child, separator)).sum();
            below.max(label.width() as f64 * LETTER + GAP)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "(S (Ws (Word (Cs (C a) (Cs (C b)))) (Ws (Word (Cs (C <))))))";

    fn keep(label: &str) -> bool {
        label == "Word"
    }

    fn read(max_depth: usize) -> Option<Node> {
        drawn(&Tree::parse(TREE).unwrap(), &keep, max_depth)
    }

    fn read_text(text: &str) -> Option<Node> {
        drawn(&Tree::parse(text).unwrap(), &keep, 9)
    }

    #[test]
    fn only_kept_nodes_remain() {
        let tree = read(9).unwrap();
        let word = |leaves: &[&str]| {
            let leaves = leaves.iter().map(|&leaf| leaf.to_owned()).collect();
            Node::Inner("Word".to_owned(), vec![Node::Leaf(leaves)])
        };
        assert_eq!(tree, Node::Inner("S".to_owned(), vec![word(&["a", "b"]), word(&["<"])]));
        assert_eq!(n_leaves(&tree), 2);
    }

    #[test]
    fn deep_trees_are_refused() {
        assert_eq!(read(1), None);
        assert_eq!(drawn(&Tree::parse("(S a)").unwrap(), &keep, 1), read_text("(S a)"));
    }

    #[test]
    fn leaves_are_as_wide_as_their_text() {
        let width = |leaf: &str| {
            let root = Node::Inner("S".to_owned(), vec![Node::Leaf(vec![leaf.to_owned()])]);
            let svg = svg(&root, "").into_string();
            let rest = svg.split_once(" width=\"").unwrap().1;
            rest.split('"').next().unwrap().parse::<f64>().unwrap()
        };
        assert_eq!(width("語言學"), width("abcdef"));
        assert_eq!(width("e\u{301}e\u{301}"), width("ee"), "accents stand above their letters");
    }

    #[test]
    fn labels_are_escaped() {
        let svg = svg(&read(9).unwrap(), "").into_string();
        assert!(svg.contains(">&lt;</text>") && svg.contains(">ab</text>"));
    }
}
