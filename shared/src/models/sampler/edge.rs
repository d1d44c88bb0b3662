//! Edges of charts, and the forms in which they are kept: small charts take less memory to read.

/// A way to derive a node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Edge {
    pub param: u32,
    /// Numbers of values; 0 stands in for an absent one.
    pub tails: [u32; 2],
}

/// The form in which a chart keeps its edges and nodes: small charts take less memory to read.
pub(super) trait Packed: Copy {
    /// Where the edges of a node end, and the number of its adapted nonterminal.
    type Index: Copy + TryFrom<u32> + Into<u32>;
    /// Packs an edge, if it is small enough.
    fn pack(edge: Edge) -> Option<Self>;
    fn edge(self) -> Edge;
}

/// A parameter of 8 bits, and tails of 12 each.
#[derive(Clone, Copy)]
pub(super) struct Word(u32);

impl Packed for Word {
    type Index = u16;

    fn pack(Edge { param, tails: [left, right] }: Edge) -> Option<Word> {
        let is_small = param < 1 << 8 && left.max(right) < 1 << 12;
        is_small.then_some(Word(param << 24 | left << 12 | right))
    }

    #[inline]
    fn edge(self) -> Edge {
        Edge { param: self.0 >> 24, tails: [self.0 >> 12 & 0xfff, self.0 & 0xfff] }
    }
}

/// A parameter and tails.
impl Packed for [u16; 3] {
    type Index = u32;

    fn pack(Edge { param, tails: [left, right] }: Edge) -> Option<[u16; 3]> {
        Some([param.try_into().ok()?, left.try_into().ok()?, right.try_into().ok()?])
    }

    #[inline]
    fn edge(self) -> Edge {
        let [param, left, right] = self;
        Edge { param: param.into(), tails: [left.into(), right.into()] }
    }
}

impl Packed for Edge {
    type Index = u32;

    fn pack(edge: Edge) -> Option<Edge> {
        Some(edge)
    }

    #[inline]
    fn edge(self) -> Edge {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed<P: Packed>(edge: Edge) -> Option<Edge> {
        P::pack(edge).map(Packed::edge)
    }

    /// Law: a form keeps the edges that it has room for, and refuses all others.
    #[test]
    fn packed_edges_come_back() {
        let around = |bits: u32| [0, 1, (1 << bits) - 1, 1 << bits];
        for param in [around(8), around(16)].concat() {
            for left in [around(12), around(16)].concat() {
                for right in [around(12), around(16)].concat() {
                    let edge = Edge { param, tails: [left, right] };
                    let largest = left.max(right);
                    assert_eq!(packed::<Word>(edge), (param < 256 && largest < 4096).then_some(edge));
                    assert_eq!(packed::<[u16; 3]>(edge), (param.max(largest) < 65_536).then_some(edge));
                    assert_eq!(packed::<Edge>(edge), Some(edge));
                }
            }
        }
    }
}
