//! Rhs binarisation, and back.
//!
//! A node A with children B C D becomes A → B @A, @A → C D: every intermediate node remembers its parent's category and none of
//! the siblings before it (horizontal markovisation 0, the X-bar grammar of Petrov et al. 2006).
//!
//! Invariant: `debinarise(binarise(tree)) == tree`, if no label of a branching node begins with `@` (the reader sees to it).

use crate::grammar::tree::{Node, Tree};

/// First character of the label of an intermediate node.
pub const INTERMEDIATE: char = '@';

/// The tree with at most two children a node.
pub fn binarise(tree: &Tree) -> Tree {
    let mut binary = Vec::with_capacity(2 * tree.nodes().len());
    // Of each node that is open: its label, its number of children, and how many of them have begun.
    let mut open: Vec<(&str, u32, u32)> = Vec::new();
    for node in tree.nodes() {
        while open.last().is_some_and(|&(_, n_children, begun)| begun == n_children) {
            open.pop();
        }
        if let Some((parent, n_children, begun)) = open.last_mut() {
            if (1..*n_children - 1).contains(begun) {
                binary.push(Node { label: format!("{INTERMEDIATE}{parent}"), n_children: 2 });
            }
            *begun += 1;
        }
        binary.push(Node { label: node.label.clone(), n_children: node.n_children.min(2) });
        open.push((&node.label, node.n_children, 0));
    }
    Tree::new(binary).expect("every intermediate node has two children")
}

/// The tree without its intermediate nodes.
pub fn debinarise(tree: &Tree) -> Tree {
    let nodes = tree.nodes();
    let is_intermediate = |node: &Node| node.n_children == 2 && node.label.starts_with(INTERMEDIATE);
    // Of the nodes not yet claimed by a parent, from right to left: how many children they will be.
    let mut waiting: Vec<u32> = Vec::new();
    let mut flat = Vec::with_capacity(nodes.len());
    for node in nodes.iter().rev() {
        let children = waiting.split_off(waiting.len() - node.n_children as usize);
        let n_children = children.iter().sum();
        if is_intermediate(node) {
            waiting.push(n_children);
        } else {
            waiting.push(1);
            flat.push(Node { label: node.label.clone(), n_children });
        }
    }
    flat.reverse();
    Tree::new(flat).expect("the children of intermediate nodes went to their parents")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_case_done_by_hand() {
        let tree = Tree::parse("(A (B b) (C (D d) (E e)) (F f) (G g))").unwrap();
        let binary = binarise(&tree);
        assert_eq!(binary.to_string(), "(A (B b) (@A (C (D d) (E e)) (@A (F f) (G g))))");
        assert_eq!(debinarise(&binary), tree);
        // A word and a tag may be called so.
        let tag = Tree::parse("(A (@ @) (B b))").unwrap();
        assert_eq!(debinarise(&tag), tag);
    }

    proptest! {
        #[test]
        fn debinarising_gives_the_tree_back(shape in prop::collection::vec((0..5u32, 0..3usize), 1..40)) {
            let mut nodes = Vec::new();
            let mut missing = 1;
            let last = shape.len() - 1;
            for (place, (wanted, label)) in shape.into_iter().enumerate() {
                let n_children = if place == last { 0 } else { wanted.max(u32::from(missing == 1)) };
                missing += n_children;
                missing -= 1;
                nodes.push(Node { label: ["A", "B", "C"][label].to_owned(), n_children });
            }
            nodes.extend((0..missing).map(|_| Node { label: "d".to_owned(), n_children: 0 }));
            let tree = Tree::new(nodes).unwrap();
            let binary = binarise(&tree);
            prop_assert!(binary.nodes().iter().all(|node| node.n_children <= 2));
            prop_assert_eq!(debinarise(&binary), tree);
        }
    }
}
