//! Cleaning: removes from a tree all that is neither category nor word.
//!
//! In: a tree as annotated. Out: the same without traces and other empty elements (tag `-NONE-`), without the nodes that these
//! leave empty, with categories in place of categories and functions (`NP-SBJ-1`, `NP=2` → `NP`), and [`ROOT`] on top.
//! Labels that begin with a hyphen, such as `-LRB-`, stay as they are.

use crate::grammar::tree::{Node, Tree};

use super::ROOT;

/// Tag of empty elements.
const EMPTY: &str = "-NONE-";
/// Labels that mean the top of a tree and nothing else.
pub const TOPS: [&str; 3] = [ROOT, "TOP", "S1"];

/// Cleans a tree; nothing is left of one without words.
pub fn clean(tree: &Tree) -> Option<Tree> {
    let nodes = tree.nodes();
    // Of the nodes not yet claimed by a parent, from right to left: whether anything is left of them.
    let mut waiting: Vec<bool> = Vec::new();
    let mut n_left = vec![0u32; nodes.len()];
    let mut is_left = vec![false; nodes.len()];
    for (at, node) in nodes.iter().enumerate().rev() {
        let children = waiting.split_off(waiting.len() - node.n_children as usize);
        n_left[at] = children.iter().map(|&left| u32::from(left)).sum();
        is_left[at] = (node.n_children == 0 || n_left[at] > 0) && node.label != EMPTY;
        waiting.push(is_left[at]);
    }
    if !is_left[0] || nodes[0].n_children == 0 {
        return None;
    }
    let has_top = TOPS.contains(&nodes[0].label.as_str());
    let mut cleaned = vec![Node { label: ROOT.to_owned(), n_children: if has_top { n_left[0] } else { 1 } }];
    // First node that does not belong to what was dropped last.
    let mut resume = usize::from(has_top);
    for (at, node) in nodes.iter().enumerate() {
        if at < resume {
            continue;
        }
        if !is_left[at] {
            resume = end_of(nodes, at);
            continue;
        }
        let label = if node.n_children == 0 { &node.label } else { category(&node.label) };
        cleaned.push(Node { label: label.to_owned(), n_children: n_left[at] });
    }
    Some(Tree::new(cleaned).expect("whole subtrees were left out"))
}

/// The position behind the subtree of node `at`.
fn end_of(nodes: &[Node], at: usize) -> usize {
    let mut missing = 1u64;
    let mut end = at;
    while missing > 0 {
        missing += u64::from(nodes[end].n_children);
        missing -= 1;
        end += 1;
    }
    end
}

/// A label without its functions.
fn category(label: &str) -> &str {
    match label.find(['-', '=']) {
        None | Some(0) => label,
        Some(end) => &label[..end],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::treebank::brackets::{line, read};

    fn cleaned(text: &str) -> Option<String> {
        let entries = read(text, "t").unwrap();
        clean(entries[0].tree.as_ref().unwrap()).as_ref().map(line)
    }

    #[test]
    fn functions_and_traces_go() {
        let text = "( (S (NP-SBJ-1 (-NONE- *) ) (VP=2 (VBZ is) (NP (NP (-NONE- *T*-1)) (ADVP|X (-LRB- -LRB-)))) (. .)))";
        let expected = "(ROOT (S (VP (VBZ is) (NP (ADVP|X (-LRB- -LRB-)))) (. .)))";
        assert_eq!(cleaned(text).unwrap(), expected);
        assert_eq!(cleaned(expected).unwrap(), expected, "what is clean stays");
    }

    #[test]
    fn there_is_one_root() {
        for text in ["(NN-X a-b)", "( (NN a-b))", "(TOP (NN a-b))", "(S1 (NN a-b))"] {
            assert_eq!(cleaned(text).unwrap(), "(ROOT (NN a-b))");
        }
        assert_eq!(cleaned("( (A a) (B b))").unwrap(), "(ROOT (A a) (B b))");
    }

    #[test]
    fn a_tree_of_traces_is_none() {
        assert_eq!(cleaned("( (S (NP (-NONE- *)) (VP (-NONE- *))))"), None);
        assert_eq!(cleaned("(-NONE- *)"), None);
    }
}
