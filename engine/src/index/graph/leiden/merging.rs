//! The graph whose nodes are the parts of another.

use crate::index::graph::leiden::graph::Undirected;
use crate::index::graph::leiden::partition::grouped;
use crate::index::graph::leiden::sums::Sums;

/// A graph with one node for each of so many parts of `graph`, whose edges are the sums of those between their nodes.
pub(super) fn merge(graph: &Undirected, parts: &[u32], count: usize, sums: &mut Sums) -> Undirected {
    let (starts, members) = grouped(parts, count);
    let mut merged = Undirected { offsets: vec![0], total: graph.total, ..Undirected::default() };
    sums.fit(count);
    for (part, bounds) in (0..).zip(starts.windows(2)) {
        let (mut own, mut strength) = (0.0, 0.0);
        for node in members[bounds[0]..bounds[1]].iter().map(|node| *node as usize) {
            own += graph.loops[node];
            strength += graph.strengths[node];
            sums.add(graph.neighbours(node).map(|(other, weight)| (parts[other], weight)));
        }
        // Every edge inside was met from both ends.
        own += sums.of(part) / 2.0;
        merged.targets.extend(sums.iter().map(|(to, _)| to).filter(|to| *to != part));
        merged.weights.extend(sums.iter().filter(|(to, _)| *to != part).map(|(_, weight)| weight));
        sums.clear();
        merged.loops.push(own);
        merged.strengths.push(strength);
        merged.offsets.push(merged.targets.len());
    }
    merged
}
