//! Sees to it that a walk can come to every node.

use crate::index::vector::{DEGREE, NOBODY};
use std::collections::BTreeSet;

/// How often lists are changed before what is still out of reach becomes an entry.
const ROUNDS: usize = 8;
/// Entries beside the first one.
const ENTRIES: usize = 64;

/// A list of neighbours.
pub type List = [[u8; 4]; DEGREE];

/// Changes the last place of a few lists so that every node is led to, or nearly so. Gives the entries: the one that there is, and
/// nodes that remain out of its reach.
pub fn mend(lists: &mut [List], entry: u32) -> Vec<[u8; 4]> {
    let mut entries = vec![entry];
    for _ in 0..ROUNDS {
        let seen = reached(lists, &entries);
        let lost: Vec<u32> = (0..).zip(&seen).filter(|(_, seen)| !**seen).map(|(node, _)| node).collect();
        if lost.is_empty() {
            break;
        }
        let mut changed = BTreeSet::new();
        for node in lost {
            let own = lists.get(node as usize).copied().unwrap_or([NOBODY.to_le_bytes(); DEGREE]);
            let near = own.iter().map(|other| u32::from_le_bytes(*other));
            let near = near.filter(|other| seen.get(*other as usize) == Some(&true));
            if let Some(other) = near.into_iter().find(|other| changed.insert(*other)) {
                lead(&mut lists[other as usize], node);
            }
        }
    }
    while entries.len() <= ENTRIES {
        let seen = reached(lists, &entries);
        let Some((node, _)) = (0..).zip(&seen).find(|(_, seen)| !**seen) else { break };
        entries.push(node);
    }
    entries.into_iter().map(u32::to_le_bytes).collect()
}

/// Puts a node at the end of a list.
fn lead(list: &mut List, node: u32) {
    let end = list.iter().position(|place| *place == NOBODY.to_le_bytes()).unwrap_or(DEGREE - 1);
    list[end] = node.to_le_bytes();
}

/// Which nodes are led to from some.
fn reached(lists: &[List], from: &[u32]) -> Vec<bool> {
    let (mut seen, mut open) = (vec![false; lists.len()], Vec::new());
    let visit = |node: u32, open: &mut Vec<u32>, seen: &mut Vec<bool>| {
        if seen.get(node as usize) == Some(&false) {
            seen[node as usize] = true;
            open.push(node);
        }
    };
    for node in from {
        visit(*node, &mut open, &mut seen);
    }
    while let Some(node) = open.pop() {
        for other in &lists[node as usize] {
            visit(u32::from_le_bytes(*other), &mut open, &mut seen);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_leads_to_is_led_to() {
        let mut lists = vec![[NOBODY.to_le_bytes(); DEGREE]; 5];
        for (node, other) in [(0_usize, 1_u32), (1, 0), (2, 1), (3, 2)] {
            lead(&mut lists[node], other);
        }
        // Node 4 has no neighbour at all.
        let entries = mend(&mut lists, 0);
        assert_eq!(entries, [0_u32, 4].map(u32::to_le_bytes));
        assert!(reached(&lists, &[0, 4]).into_iter().all(|seen| seen));
    }
}
