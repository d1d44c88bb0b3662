//! Cycles in a graph of symbols, for the checks of recursion.
//!
//! In: for each node, the nodes that its edges lead to. Linear in nodes and edges, without recursion.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::stop::{Meter, checked};

/// The strongly connected components, each after those that its edges lead to.
///
/// Tarjan (1972), with an explicit stack.
pub fn components(edges: &[Vec<u32>]) -> Vec<Vec<u32>> {
    const UNSEEN: usize = usize::MAX;
    let n = edges.len();
    let (mut number, mut low) = (vec![UNSEEN; n], vec![0; n]);
    let (mut component, mut in_component) = (Vec::new(), vec![false; n]);
    let mut found = Vec::new();
    let (mut next_number, mut meter) = (0, Meter::default());
    for root in checked(0..n) {
        if number[root] != UNSEEN {
            continue;
        }
        // (node, how many of its edges have been followed)
        let mut path = vec![(root, 0)];
        while let Some(&mut (node, ref mut followed)) = path.last_mut() {
            meter.add(1);
            if *followed == 0 {
                number[node] = next_number;
                low[node] = next_number;
                next_number += 1;
                component.push(node as u32);
                in_component[node] = true;
            }
            if let Some(&child) = edges[node].get(*followed) {
                *followed += 1;
                let child = child as usize;
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
                let first = component.iter().rposition(|&member| member as usize == node);
                let members = component.split_off(first.expect("it was pushed"));
                members.iter().for_each(|&member| in_component[member as usize] = false);
                found.push(members);
            }
        }
    }
    found
}

/// Whether the component of a graph has a cycle: several nodes, or one with an edge to itself.
pub fn is_cyclic(component: &[u32], edges: &[Vec<u32>]) -> bool {
    component.len() > 1 || component.iter().any(|node| edges[*node as usize].contains(node))
}

/// Marks the nodes that lie on a cycle; `[n_nodes]`.
pub fn on_cycle(edges: &[Vec<u32>]) -> Vec<bool> {
    let mut found = vec![false; edges.len()];
    for component in components(edges).iter().filter(|component| is_cyclic(component, edges)) {
        component.iter().for_each(|&node| found[node as usize] = true);
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

    #[test]
    fn components_come_after_those_they_lead_to() {
        let edges = [vec![1], vec![0, 2], vec![3], vec![3], vec![0]];
        assert_eq!(components(&edges), [vec![3], vec![2], vec![0, 1], vec![4]]);
    }
}
