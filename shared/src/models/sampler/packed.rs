//! Edges and nodes of charts, and the forms in which they are kept: small charts take less memory, and less time to read.

/// A way to derive a node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Edge {
    /// Number of its parameter among those of all edges.
    pub param: u32,
    /// Numbers of values; 0 stands in for an absent one.
    pub tails: [u32; 2],
}

/// A node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Node {
    /// Where its edges end; they begin where those of the node before end.
    pub end: u32,
    pub seat: Seat,
}

/// The adapted nonterminal that a node is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Seat {
    /// Its string; 0 for one that no table can have while the node is drawn, and for nodes of no adapted nonterminal.
    pub string: u32,
    /// Its number and one; 0 for none.
    pub adapted: u32,
}

/// A value in a form that takes less memory.
pub(super) trait Packed<T>: Copy {
    /// Packs a value, if it is small enough.
    fn pack(value: T) -> Option<Self>;
    fn unpack(self) -> T;
}

/// The forms of the edges and nodes of a chart.
pub(super) trait Form {
    type Edge: Packed<Edge>;
    type Node: Packed<Node>;
}

/// Up to 8,192 values.
pub(super) struct Small;

/// Up to 65,536 values.
pub(super) struct Medium;

pub(super) struct Large;

impl Form for Small {
    type Edge = Word;
    type Node = [u16; 3];
}

impl Form for Medium {
    type Edge = [u16; 3];
    type Node = [u32; 2];
}

impl Form for Large {
    type Edge = Edge;
    type Node = Node;
}

/// A parameter of 6 bits, and tails of 13 each.
#[derive(Clone, Copy)]
pub(super) struct Word(u32);

impl Packed<Edge> for Word {
    fn pack(Edge { param, tails: [left, right] }: Edge) -> Option<Word> {
        let is_small = param < 1 << 6 && left.max(right) < 1 << 13;
        is_small.then_some(Word(param << 26 | left << 13 | right))
    }

    #[inline]
    fn unpack(self) -> Edge {
        Edge { param: self.0 >> 26, tails: [self.0 >> 13 & 0x1fff, self.0 & 0x1fff] }
    }
}

/// A parameter and tails.
impl Packed<Edge> for [u16; 3] {
    fn pack(Edge { param, tails: [left, right] }: Edge) -> Option<[u16; 3]> {
        Some([param.try_into().ok()?, left.try_into().ok()?, right.try_into().ok()?])
    }

    #[inline]
    fn unpack(self) -> Edge {
        let [param, left, right] = self;
        Edge { param: param.into(), tails: [left.into(), right.into()] }
    }
}

/// The end, and the two halves of the seat.
impl Packed<Node> for [u16; 3] {
    fn pack(Node { end, seat }: Node) -> Option<[u16; 3]> {
        let seat = packed_seat(seat)?;
        Some([end.try_into().ok()?, (seat >> 16) as u16, seat as u16])
    }

    #[inline]
    fn unpack(self) -> Node {
        let [end, high, low] = self;
        Node { end: end.into(), seat: unpacked_seat(u32::from(high) << 16 | u32::from(low)) }
    }
}

/// The end and the seat.
impl Packed<Node> for [u32; 2] {
    fn pack(Node { end, seat }: Node) -> Option<[u32; 2]> {
        Some([end, packed_seat(seat)?])
    }

    #[inline]
    fn unpack(self) -> Node {
        let [end, seat] = self;
        Node { end, seat: unpacked_seat(seat) }
    }
}

/// An adapted nonterminal of 6 bits, and a string of 26.
fn packed_seat(Seat { string, adapted }: Seat) -> Option<u32> {
    (adapted < 1 << 6 && string < 1 << 26).then_some(adapted << 26 | string)
}

#[inline]
fn unpacked_seat(seat: u32) -> Seat {
    Seat { string: seat & 0x3ff_ffff, adapted: seat >> 26 }
}

impl Packed<Edge> for Edge {
    fn pack(edge: Edge) -> Option<Edge> {
        Some(edge)
    }

    #[inline]
    fn unpack(self) -> Edge {
        self
    }
}

impl Packed<Node> for Node {
    fn pack(node: Node) -> Option<Node> {
        Some(node)
    }

    #[inline]
    fn unpack(self) -> Node {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed<T, P: Packed<T>>(value: T) -> Option<T> {
        P::pack(value).map(Packed::unpack)
    }

    /// Numbers of so many bits, and the first that needs more.
    fn around(bits: u32) -> [u32; 4] {
        [0, 1, (1 << bits) - 1, 1 << bits]
    }

    /// Law: a form keeps the edges that it has room for, and refuses all others.
    #[test]
    fn packed_edges_come_back() {
        for param in [around(6), around(16)].concat() {
            for left in [around(13), around(16)].concat() {
                for right in [around(13), around(16)].concat() {
                    let edge = Edge { param, tails: [left, right] };
                    let largest = left.max(right);
                    assert_eq!(packed::<_, Word>(edge), (param < 64 && largest < 8192).then_some(edge));
                    let has_room = param.max(largest) < 65_536;
                    assert_eq!(packed::<_, [u16; 3]>(edge), has_room.then_some(edge));
                    assert_eq!(packed::<_, Edge>(edge), Some(edge));
                }
            }
        }
    }

    /// Law: so with nodes.
    #[test]
    fn packed_nodes_come_back() {
        for end in around(16) {
            for adapted in around(6) {
                for string in around(26) {
                    let node = Node { end, seat: Seat { string, adapted } };
                    let is_small = adapted < 64 && string < 1 << 26;
                    assert_eq!(packed::<_, [u16; 3]>(node), (is_small && end < 65_536).then_some(node));
                    assert_eq!(packed::<_, [u32; 2]>(node), is_small.then_some(node));
                    assert_eq!(packed::<_, Node>(node), Some(node));
                }
            }
        }
    }
}
