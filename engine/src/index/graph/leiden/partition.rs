//! Which node is in which community: quality, numbers, connected parts.

use crate::index::graph::leiden::graph::{GraphFault, RESOLUTION_MAX, Undirected};

/// How much it takes to hold a community together: the larger, the smaller communities are. 1 unless something else is wanted.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Resolution(f64);

impl Resolution {
    /// A resolution from 0, by which everything that is connected is one community, to 10⁹.
    ///
    /// # Errors
    /// [`GraphFault::Resolution`].
    pub fn new(given: f64) -> Result<Self, GraphFault> {
        if (0.0..=RESOLUTION_MAX).contains(&given) { Ok(Self(given)) } else { Err(GraphFault::Resolution { given }) }
    }

    /// What each end of an edge takes, as a share of the ends that it could meet.
    pub(super) fn share(self, graph: &Undirected) -> f64 {
        if graph.total > 0.0 { self.0 / graph.total } else { 0.0 }
    }
}

impl Default for Resolution {
    fn default() -> Self {
        Self(1.0)
    }
}

/// The modularity of communities, one for each node (Newman and Girvan 2004; with a resolution: Reichardt and Bornholdt 2006).
///
/// Over all communities, the share of the weight of all edges that is inside, less the resolution times the square of the share of
/// all ends of edges that are there. 0 for a graph without edges. Communities have any numbers; a node without one is alone.
/// Looks at every edge twice, and takes 36 bytes a node.
#[must_use]
pub fn modularity(graph: &Undirected, communities: &[u32], resolution: Resolution) -> f64 {
    let alone = (1_u64 << 32..).take(graph.nodes()).skip(communities.len());
    let names: Vec<u64> = communities.iter().map(|name| u64::from(*name)).take(graph.nodes()).chain(alone).collect();
    let mut distinct = names.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let number = |name: &u64| u32::try_from(distinct.binary_search(name).unwrap_or(0)).unwrap_or(u32::MAX);
    let numbers: Vec<u32> = names.iter().map(number).collect();
    quality(graph, &numbers, resolution)
}

/// The modularity of communities whose numbers are lower than the number of nodes.
pub(super) fn quality(graph: &Undirected, communities: &[u32], resolution: Resolution) -> f64 {
    if graph.total <= 0.0 {
        return 0.0;
    }
    let (mut inside, mut ends) = (vec![0.0; graph.nodes()], vec![0.0; graph.nodes()]);
    for (node, own) in communities.iter().enumerate() {
        let within = |(other, weight): (usize, f64)| if communities[other] == *own { weight } else { 0.0 };
        inside[*own as usize] += 2.0 * graph.loops[node] + graph.neighbours(node).map(within).sum::<f64>();
        ends[*own as usize] += graph.strengths[node];
    }
    let share = |ends: f64| ends / graph.total;
    inside.iter().zip(&ends).map(|(inside, ends)| share(*inside) - resolution.0 * share(*ends) * share(*ends)).sum()
}

/// Numbers communities from 0 on in the order in which they are met, and tells how many there are; the numbers that they have are
/// lower than `end`.
pub(super) fn numbered(communities: &mut [u32], end: usize) -> usize {
    let mut numbers = vec![u32::MAX; end];
    let mut count = 0;
    for community in communities {
        let number = &mut numbers[*community as usize];
        if *number == u32::MAX {
            *number = count;
            count += 1;
        }
        *community = *number;
    }
    count as usize
}

/// Numbers communities by descending size, and those of the same size by their first node.
pub(super) fn canonical(communities: &mut [u32], end: usize) -> usize {
    let count = numbered(communities, end);
    let mut sizes = vec![0_usize; count];
    for community in &*communities {
        sizes[*community as usize] += 1;
    }
    let mut order: Vec<u32> = (0..).take(count).collect();
    // Stable, and they are numbered by their first nodes already.
    order.sort_by_key(|community| std::cmp::Reverse(sizes[*community as usize]));
    let mut numbers = vec![0; count];
    (0..).zip(order).for_each(|(number, community)| numbers[community as usize] = number);
    for community in communities {
        *community = numbers[*community as usize];
    }
    count
}

/// Makes every connected part of a community one of its own, and numbers them in the order in which they are met.
pub(super) fn split(graph: &Undirected, communities: &mut [u32]) {
    let mut parts = vec![u32::MAX; communities.len()];
    let (mut count, mut open) = (0, Vec::new());
    for start in 0..communities.len() {
        if parts[start] != u32::MAX {
            continue;
        }
        parts[start] = count;
        open.push(start);
        while let Some(node) = open.pop() {
            for (other, _) in graph.neighbours(node) {
                if parts[other] == u32::MAX && communities[other] == communities[node] {
                    parts[other] = count;
                    open.push(other);
                }
            }
        }
        count += 1;
    }
    communities.copy_from_slice(&parts);
}

/// The communities into which those of two partitions cut each other, numbered from 0 on, and how many there are.
pub(super) fn common(a: &[u32], b: &[u32]) -> (Vec<u32>, usize) {
    let end = |of: &[u32]| of.iter().max().map_or(0, |most| *most as usize + 1);
    let (starts, members) = grouped(a, end(a));
    // For each community of b the number of what it shares with the present one of a.
    let mut shared = vec![(u32::MAX, 0); end(b)];
    let (mut common, mut count) = (vec![0; a.len()], 0);
    for (community, range) in (0..).zip(starts.windows(2)) {
        for node in &members[range[0]..range[1]] {
            let place = &mut shared[b[*node as usize] as usize];
            if place.0 != community {
                *place = (community, count);
                count += 1;
            }
            common[*node as usize] = place.1;
        }
    }
    (common, count as usize)
}

/// The nodes of each of so many parts, one part after another, and where each part begins.
pub(super) fn grouped(parts: &[u32], count: usize) -> (Vec<usize>, Vec<u32>) {
    let mut starts = vec![0; count + 1];
    for part in parts {
        starts[*part as usize + 1] += 1;
    }
    for part in 0..count {
        starts[part + 1] += starts[part];
    }
    let (mut next, mut members) = (starts.clone(), vec![0; parts.len()]);
    for (node, part) in (0..).zip(parts) {
        members[next[*part as usize]] = node;
        next[*part as usize] += 1;
    }
    (starts, members)
}

#[cfg(test)]
mod tests {
    use crate::index::graph::leiden::Undirected;
    use crate::index::graph::leiden::partition::{canonical, common, split};

    #[test]
    fn what_is_not_connected_is_split() {
        let edges = [(0, 1), (1, 2), (2, 3), (3, 4), (5, 5)].map(|(from, to)| (from, to, 1.0));
        let graph = Undirected::from_edges(7, edges).unwrap();
        let mut communities = [3, 3, 1, 3, 3, 1, 1];
        split(&graph, &mut communities);
        assert_eq!(communities, [0, 0, 1, 2, 2, 3, 4]);
    }

    #[test]
    fn partitions_cut_each_other() {
        let (cut, count) = common(&[0, 0, 1, 1, 2, 2], &[1, 1, 1, 0, 0, 1]);
        assert_eq!((cut, count), (vec![0, 0, 1, 2, 3, 4], 5));
        assert_eq!(common(&[], &[]), (vec![], 0));
    }

    #[test]
    fn communities_are_numbered_by_size_and_first_node() {
        let mut communities = [4, 2, 2, 0, 0, 5, 0];
        assert_eq!(canonical(&mut communities, 7), 4);
        assert_eq!(communities, [2, 1, 1, 0, 0, 3, 0]);
    }
}
