//! Dependency trees as derivations of the grammar, and back.
//!
//! A dependency tree is a list of heads, one a word: positions counted from 1, and 0 for the root. A derivation is the bracketed
//! [`Tree`] that decoders print. Each has exactly one of the other, if the heads have one root and no crossing arcs.

use super::grammar::{EXTENDED_STATES, HALVES, START, STATES};
use super::layout::Side;
use crate::grammar::tree::{Node, Tree};

/// Why heads are no derivation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotProjective {
    /// Another number of heads than of tags, or none.
    #[error("{heads} heads of {tags} tags; expected as many, and one or more")]
    Length {
        /// Number of tags.
        tags: usize,
        /// Number of heads.
        heads: usize,
    },
    /// A head that is not in the sentence.
    #[error("word {word} has the head {head}, expected 0 to {n}")]
    OutOfRange {
        /// The word.
        word: usize,
        /// Its head.
        head: u32,
        /// Length of the sentence.
        n: usize,
    },
    /// A sentence without a root, or with several.
    #[error("{found} words have the head 0, expected one root")]
    Roots {
        /// Number of words with head 0.
        found: usize,
    },
    /// A word that is below itself.
    #[error("word {word} is below itself")]
    Cycle {
        /// The word.
        word: usize,
    },
    /// Two arcs that cross; the root's head stands before the sentence.
    #[error("the arcs {} → {} and {} → {} cross, which no projective tree has", .first.0, .first.1, .second.0, .second.1)]
    Crossing {
        /// Head and child.
        first: (usize, usize),
        /// Head and child.
        second: (usize, usize),
    },
}

/// A bracketed tree that is not a derivation of the grammar.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the tree is no derivation of a dependency grammar: `{label}` does not belong where it stands")]
pub struct NotDependencies {
    /// Label of the first node, from the right, that cannot be there.
    pub label: String,
}

/// Meaning of a label, apart from the tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Start,
    /// Before the first child.
    First(Side),
    /// Before another child.
    Rest(Side),
    /// Expects another child.
    More(Side),
    /// A token.
    Half(Side),
}

use Side::{Left, Right};

/// Kinds in the order of [`EXTENDED_STATES`], which have all of [`STATES`] among them.
const EXTENDED_KINDS: [Kind; 10] = [
    Kind::First(Left),
    Kind::Rest(Left),
    Kind::Rest(Left),
    Kind::More(Left),
    Kind::More(Left),
    Kind::First(Right),
    Kind::Rest(Right),
    Kind::Rest(Right),
    Kind::More(Right),
    Kind::More(Right),
];

impl Kind {
    /// Kind and tag of a label.
    fn of(label: &str) -> Option<(Kind, &str)> {
        let ends = |(ending, kind): (&&str, Kind)| label.strip_suffix(ending).map(|tag| (kind, tag));
        let halves = HALVES.iter().zip([Kind::Half(Left), Kind::Half(Right)]);
        let extended = EXTENDED_STATES.iter().zip(EXTENDED_KINDS);
        let named = extended.chain(halves).find_map(ends);
        named.or((label == START).then_some((Kind::Start, "")))
    }

    /// The label of a tag.
    fn label(self, tag: &str) -> String {
        match self {
            Kind::Start => START.to_owned(),
            Kind::Half(side) => format!("{tag}{}", HALVES[side as usize]),
            Kind::First(side) => format!("{tag}{}", STATES[3 * side as usize]),
            Kind::Rest(side) => format!("{tag}{}", STATES[3 * side as usize + 1]),
            Kind::More(side) => format!("{tag}{}", STATES[3 * side as usize + 2]),
        }
    }
}

/// The tags and heads of a derivation, `[n]` each.
///
/// # Errors
/// [`NotDependencies`] if it is no such tree.
pub fn heads(tree: &Tree) -> Result<(Vec<String>, Vec<u32>), NotDependencies> {
    let mut n_tokens = tree.terminals().count();
    let n = n_tokens / 2;
    let (mut tags, mut heads) = (vec![""; n], vec![0; n]);
    // Kinds and words. Backwards through the preorder, the children of a node are the last ones on the stack.
    let mut done: Vec<(Kind, usize)> = Vec::new();
    for node in tree.nodes().iter().rev() {
        let wrong = || NotDependencies { label: node.label.clone() };
        let mut children = done.split_off(done.len() - node.n_children as usize);
        children.reverse();
        let (kind, tag) = Kind::of(&node.label).ok_or_else(wrong)?;
        let word = match (kind, &children[..]) {
            (Kind::Half(side), &[]) => {
                n_tokens -= 1;
                let word = n_tokens / 2;
                if word == n || n_tokens % 2 != side as usize {
                    return Err(wrong());
                }
                if side == Right {
                    tags[word] = tag;
                }
                word
            }
            (Kind::First(side) | Kind::Rest(side), &[(Kind::Half(of) | Kind::More(of), word)])
                if of == side =>
            {
                word
            }
            (
                Kind::More(Left),
                &[(Kind::First(Left), left), (Kind::First(Right), right), (Kind::Rest(Left), head)],
            )
            | (
                Kind::More(Right),
                &[(Kind::Rest(Right), head), (Kind::First(Left), left), (Kind::First(Right), right)],
            ) if left == right => {
                heads[left] = head as u32 + 1;
                head
            }
            (Kind::Start, &[(Kind::First(Left), left), (Kind::First(Right), right)]) if left == right => left,
            _ => return Err(wrong()),
        };
        if kind != Kind::Start && tag != tags[word] {
            return Err(wrong());
        }
        done.push((kind, word));
    }
    match done[..] {
        [(Kind::Start, _)] => Ok((tags.into_iter().map(str::to_owned).collect(), heads)),
        _ => Err(NotDependencies { label: tree.nodes()[0].label.clone() }),
    }
}

/// The derivation of heads.
///
/// # Errors
/// [`NotProjective`] if they are not a tree with one root and without crossing arcs.
///
/// ```
/// use grammaton::models::dmv::heads::{heads, tree};
///
/// let tags: Vec<String> = ["DT", "NN"].map(str::to_owned).to_vec();
/// let made = tree(&tags, &[2, 0])?;
/// assert_eq!(
///     made.to_string(),
///     "(S (NN.L (NN.L.more (DT.L DT<) (DT.R DT>) (NN.L.rest NN<))) (NN.R NN>))"
/// );
/// assert_eq!(heads(&made), Ok((tags, vec![2, 0])));
/// # Ok::<(), grammaton::models::dmv::heads::NotProjective>(())
/// ```
pub fn tree(tags: &[String], heads: &[u32]) -> Result<Tree, NotProjective> {
    check(tags.len(), heads)?;
    // By head: its children before and after it, ascending; head 0 has its one child after it.
    let mut children: Vec<[Vec<usize>; 2]> = vec![Default::default(); heads.len() + 1];
    for (child, &head) in (1..).zip(heads) {
        children[head as usize][usize::from(child > head as usize)].push(child);
    }
    let mut nodes = Vec::new();
    // A kind, its word, and how many of the word's children on that side are still to come, of which the outermost is next.
    let mut open = vec![(Kind::Start, 0, 1)];
    while let Some((kind, word, n_left)) = open.pop() {
        let side = match kind {
            Kind::Start => Right,
            Kind::First(side) | Kind::Rest(side) | Kind::More(side) | Kind::Half(side) => side,
        };
        let of_side = &children[word][side as usize];
        let words = |child: usize| {
            [Left, Right].map(|side| (Kind::First(side), child, children[child][side as usize].len()))
        };
        let below = match kind {
            Kind::Half(_) => Vec::new(),
            Kind::First(_) | Kind::Rest(_) if n_left == 0 => vec![(Kind::Half(side), word, 0)],
            Kind::First(_) | Kind::Rest(_) => vec![(Kind::More(side), word, n_left)],
            Kind::Start => words(of_side[0]).to_vec(),
            Kind::More(Left) => {
                let [left, right] = words(of_side[of_side.len() - n_left]);
                vec![left, right, (Kind::Rest(Left), word, n_left - 1)]
            }
            Kind::More(Right) => {
                let [left, right] = words(of_side[n_left - 1]);
                vec![(Kind::Rest(Right), word, n_left - 1), left, right]
            }
        };
        let tag = word.checked_sub(1).map_or("", |at| &tags[at]);
        nodes.push(Node { label: kind.label(tag), n_children: below.len() as u32 });
        open.extend(below.into_iter().rev());
    }
    Ok(Tree::new(nodes).expect("every node announces what is put on the stack for it"))
}

/// Whether a projective tree with one root has these heads; `None` where any will do. `[n]`
///
/// Eisner (1996), with truth values for weights: O(n³).
///
/// ```
/// use grammaton::models::dmv::heads::have_tree;
///
/// assert!(have_tree(&[None, Some(0), None]));
/// assert!(!have_tree(&[Some(3), Some(4), None, None]), "3 → 1 and 4 → 2 cross");
/// ```
pub fn have_tree(heads: &[Option<u32>]) -> bool {
    let n = heads.len();
    let allows = |head: usize, child: usize| heads[child].is_none_or(|known| known as usize == head);
    // By the word that governs a span and the other end of the span: with all its children on that side, and up to its child at the end.
    let at = |governor: usize, end: usize| governor * n + end;
    let (mut complete, mut open) = (vec![false; n * n], vec![false; n * n]);
    (0..n).for_each(|word| complete[at(word, word)] = true);
    for length in 1..n {
        for first in 0..n - length {
            let last = first + length;
            let meet = (first..last).any(|split| complete[at(first, split)] && complete[at(last, split + 1)]);
            open[at(first, last)] = meet && allows(first + 1, last);
            open[at(last, first)] = meet && allows(last + 1, first);
            complete[at(first, last)] =
                (first + 1..=last).any(|child| open[at(first, child)] && complete[at(child, last)]);
            complete[at(last, first)] =
                (first..last).any(|child| open[at(last, child)] && complete[at(child, first)]);
        }
    }
    (0..n).any(|root| allows(0, root) && complete[at(root, 0)] && complete[at(root, n - 1)])
}

/// The heads of a sentence of which nothing is known: each word hangs on the next one, and the last is the root. `[n]`
pub fn flat(n: usize) -> Vec<u32> {
    (2..=n as u32).chain([0]).take(n).collect()
}

/// Whether heads are a projective tree with one root; an error says what is wrong.
///
/// # Errors
/// [`NotProjective`].
pub fn check(n_tags: usize, heads: &[u32]) -> Result<(), NotProjective> {
    let n = heads.len();
    if n == 0 || n != n_tags {
        return Err(NotProjective::Length { tags: n_tags, heads: n });
    }
    if let Some((word, &head)) = (1..).zip(heads).find(|&(_, &head)| head as usize > n) {
        return Err(NotProjective::OutOfRange { word, head, n });
    }
    let found = heads.iter().filter(|&&head| head == 0).count();
    if found != 1 {
        return Err(NotProjective::Roots { found });
    }
    // By word: the word from which it was first passed on the way up.
    let mut passed = vec![0; n + 1];
    for start in 1..=n {
        let mut word = start;
        while word != 0 && passed[word] == 0 {
            passed[word] = start;
            word = heads[word - 1] as usize;
        }
        if word != 0 && passed[word] == start {
            return Err(NotProjective::Cycle { word });
        }
    }
    let ends = |(child, &head): (usize, &u32)| (child.min(head as usize), child.max(head as usize));
    for second in (1..).zip(heads) {
        for first in (1..second.0).zip(heads) {
            let ((a, b), (c, d)) = (ends(first), ends(second));
            if (a < c && c < b && b < d) || (c < a && a < d && d < b) {
                let arc = |(child, &head): (usize, &u32)| (head as usize, child);
                return Err(NotProjective::Crossing { first: arc(first), second: arc(second) });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_that_are_no_tree_are_refused() {
        for (given, expected) in [
            (&[][..], "0 heads of 0 tags; expected as many, and one or more"),
            (&[0, 4, 1][..], "word 2 has the head 4, expected 0 to 3"),
            (&[0, 0, 1][..], "2 words have the head 0, expected one root"),
            (&[2, 1][..], "0 words have the head 0, expected one root"),
            (&[0, 3, 2][..], "word 2 is below itself"),
            (&[0, 2][..], "word 2 is below itself"),
            (&[3, 4, 0, 3][..], "the arcs 3 → 1 and 4 → 2 cross, which no projective tree has"),
            (&[3, 0, 2][..], "the arcs 3 → 1 and 0 → 2 cross, which no projective tree has"),
        ] {
            let tags = vec!["N".to_owned(); given.len()];
            assert_eq!(tree(&tags, given).unwrap_err().to_string(), expected);
        }
        assert_eq!(tree(&["N".to_owned()], &[0, 1]), Err(NotProjective::Length { tags: 1, heads: 2 }));
    }

    #[test]
    fn trees_that_are_no_derivations_are_refused() {
        for (text, label) in [
            ("(S (N.L N<) (N.R V>))", "N.R"),
            ("(S (N.L V<) (N.R N>))", "V<"),
            ("(S (N.L N<) (N.R N>) (N.R N>))", "N>"),
            ("(S (N.L N>) (N.R N<))", "N<"),
            ("(S (N.R N<) (N.L N>))", "N.L"),
            ("(S (N.L N<) (N.R (N.R.more (N.R N>) (V.L V<) (V.R V>))))", "N.R.more"),
            ("(S (Sentence a))", "a"),
            ("(N.L N<)", "N<"),
        ] {
            assert_eq!(heads(&Tree::parse(text).unwrap()).unwrap_err().label, label, "{text}");
        }
    }

    #[test]
    fn long_sentences_are_no_deeper_than_the_stack() {
        let n = 2000;
        let tags = vec!["N".to_owned(); n];
        let chain: Vec<u32> = (0..n as u32).collect();
        assert_eq!(heads(&tree(&tags, &chain).unwrap()).unwrap().1, chain);
        let fan: Vec<u32> = (0..n as u32).map(|word| if word == 1000 { 0 } else { 1001 }).collect();
        assert_eq!(heads(&tree(&tags, &fan).unwrap()).unwrap().1, fan);
    }
}
