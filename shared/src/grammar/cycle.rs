//! Cycles in a graph of symbols, for the checks of recursion.
//!
//! In: for each node, the nodes that its edges lead to. Linear in nodes and edges, without recursion.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// Which nodes lie on a cycle: those in a strongly connected component with an edge inside it.
///
/// Tarjan (1972), with an explicit stack.
pub fn on_cycle(edges: &[Vec<u32>]) -> Vec<bool> {
    const UNSEEN: usize = usize::MAX;
    let n = edges.len();
    let (mut number, mut low) = (vec![UNSEEN; n], vec![0; n]);
    let (mut component, mut in_component) = (Vec::new(), vec![false; n]);
    let mut found = vec![false; n];
    let mut next_number = 0;
    for root in 0..n {
        if number[root] != UNSEEN {
            continue;
        }
        // (node, how many of its edges have been followed)
        let mut path = vec![(root, 0)];
        while let Some(&mut (node, ref mut followed)) = path.last_mut() {
            if *followed == 0 {
                number[node] = next_number;
                low[node] = next_number;
                next_number += 1;
                component.push(node);
                in_component[node] = true;
            }
            if let Some(&child) = edges[node].get(*followed) {
                *followed += 1;
                let child = child as usize;
                found[node] |= child == node;
                if number[child] == UNSEEN {
                    path.push((child, 0));
                } else if in_component[child] {
                    low[node] = low[node].min(number[child]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                low[parent] = low[parent].min(low[node]);
            }
            if low[node] == number[node] {
                let first = component.iter().rposition(|&member| member == node).expect("it was pushed");
                let alone = component.len() - first == 1;
                for member in component.drain(first..) {
                    in_component[member] = false;
                    found[member] |= !alone;
                }
            }
        }
    }
    found
}

/// A shortest cycle through `start`, which must lie on one; `start` stands at both ends.
pub fn shortest_cycle(edges: &[Vec<u32>], start: u32) -> Vec<u32> {
    let mut reached_from: FxHashMap<u32, u32> = FxHashMap::default();
    let mut open = VecDeque::from([start]);
    while let Some(node) = open.pop_front() {
        for &child in &edges[node as usize] {
            if reached_from.contains_key(&child) {
                continue;
            }
            reached_from.insert(child, node);
            open.push_back(child);
        }
    }
    let mut cycle = vec![start];
    loop {
        let before = reached_from[cycle.last().expect("it begins with one")];
        cycle.push(before);
        if before == start {
            cycle.reverse();
            return cycle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_between_cycles_are_on_none() {
        // 0 ⇄ 1 → 2 → 3 ⟲, and 4 → 0.
        let edges = [vec![1], vec![0, 2], vec![3], vec![3], vec![0]];
        assert_eq!(on_cycle(&edges), [true, true, false, true, false]);
        assert_eq!(shortest_cycle(&edges, 1), [1, 0, 1]);
        assert_eq!(shortest_cycle(&edges, 3), [3, 3]);
    }
}
