//! Refinement: what of each community holds together, from single nodes upwards.

use crate::index::graph::leiden::graph::Undirected;
use crate::index::graph::leiden::moving::GAIN_MIN;
use crate::index::graph::leiden::partition::Resolution;
use crate::index::graph::leiden::random::Random;
use crate::index::graph::leiden::sums::Sums;

/// What refining needs beside the graph; kept from one graph to the next.
#[derive(Debug, Default)]
pub(super) struct Refiner {
    /// The part that each node is in; a part is named by the node that it began with.
    parts: Vec<u32>,
    /// The strength of each part.
    totals: Vec<f64>,
    /// The weight of the edges from each part to the rest of its community.
    outward: Vec<f64>,
    /// Whether another node joined the one that the part began with.
    joined: Vec<bool>,
    /// The strength of each community.
    whole: Vec<f64>,
    /// For each part the weight of the edges to it, of the node that is looked at.
    sums: Sums,
    order: Vec<u32>,
}

impl Refiner {
    /// Parts of the communities, each connected: for each node the number of its part; and how many parts there are.
    ///
    /// Nodes come in an order of chance. One that is still alone, and well connected to the rest of its community, joins a part
    /// of the community that is so, too, and to which it adds modularity: the one to
    /// which it adds most. (To join by chance, as the paper has it, led to less modularity on every graph that was tried.)
    pub(super) fn refine(
        &mut self,
        graph: &Undirected,
        resolution: Resolution,
        communities: &[u32],
        random: &mut Random,
    ) -> (Vec<u32>, usize) {
        self.prepare(graph, communities);
        let share = resolution.share(graph);
        random.arrange(&mut self.order, graph.nodes());
        for at in 0..self.order.len() {
            let node = self.order[at] as usize;
            let whole = self.whole[communities[node] as usize];
            let strength = graph.strengths[node];
            if self.joined[node] || self.outward[node] < share * strength * (whole - strength) {
                continue;
            }
            let to = self.choose(graph, share, communities, node);
            if let Some((to, inward)) = to {
                self.parts[node] = to;
                let to = to as usize;
                self.joined[to] = true;
                self.joined[node] = true;
                self.totals[to] += strength;
                self.outward[to] += self.outward[node] - 2.0 * inward;
            }
        }
        self.numbered()
    }

    fn prepare(&mut self, graph: &Undirected, communities: &[u32]) {
        let nodes = graph.nodes();
        self.parts.clear();
        self.parts.extend((0..).take(nodes));
        self.totals.clear();
        self.totals.extend_from_slice(&graph.strengths);
        self.joined.clear();
        self.joined.resize(nodes, false);
        self.sums.fit(nodes);
        self.whole.clear();
        self.whole.resize(nodes, 0.0);
        for (community, strength) in communities.iter().zip(&graph.strengths) {
            self.whole[*community as usize] += strength;
        }
        self.outward.clear();
        let inside = |node: usize| {
            let own = communities[node];
            graph
                .neighbours(node)
                .map(|(other, weight)| if communities[other] == own { weight } else { 0.0 })
                .sum::<f64>()
        };
        self.outward.extend((0..nodes).map(inside));
    }

    /// The part that a node joins, if any, with the weight of the edges to it.
    fn choose(&mut self, graph: &Undirected, share: f64, communities: &[u32], node: usize) -> Option<(u32, f64)> {
        let own = communities[node];
        let inside = graph.neighbours(node).filter(|(other, _)| communities[*other] == own);
        self.sums.add(inside.map(|(other, weight)| (self.parts[other], weight)));
        let strength = graph.strengths[node];
        let (pull, whole) = (strength * share, self.whole[own as usize]);
        let (mut to, mut most) = (None, strength * GAIN_MIN);
        for (part, sum) in self.sums.iter() {
            let total = self.totals[part as usize];
            let gain = sum - pull * total;
            if gain > most && self.outward[part as usize] >= share * total * (whole - total) {
                (to, most) = (Some((part, sum)), gain);
            }
        }
        self.sums.clear();
        to
    }

    fn numbered(&mut self) -> (Vec<u32>, usize) {
        // The order is not needed any more.
        let numbers = &mut self.order;
        let mut count = 0;
        numbers.fill(u32::MAX);
        let number = |part: &u32| {
            let number = &mut numbers[*part as usize];
            if *number == u32::MAX {
                *number = count;
                count += 1;
            }
            *number
        };
        let parts = self.parts.iter().map(number).collect();
        (parts, count as usize)
    }
}
