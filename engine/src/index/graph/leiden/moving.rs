//! Moving nodes one by one to the neighbouring community where they add most to modularity.

use crate::index::control::Cancelled;
use crate::index::graph::leiden::graph::Undirected;
use crate::index::graph::leiden::partition::Resolution;
use crate::index::graph::leiden::sums::Sums;
use crate::index::graph::leiden::watch::Watch;

/// A move has to add at least so much, as a share of the strength of the node; rounding is far below it.
pub(super) const GAIN_MIN: f64 = 1e-10;

/// Neighbours that are looked at until whoever watches is asked.
const ASK_EVERY: usize = 1 << 18;

/// How often every neighbour of every node is looked at, on average, before moving ends anyway.
const ROUNDS_MAX: usize = 64;

/// What moving needs beside the graph; kept from one graph to the next.
#[derive(Debug, Default)]
pub(super) struct Mover {
    /// Nodes that wait, from `head` on and around the end.
    queue: Vec<u32>,
    waits: Vec<bool>,
    /// For each community the weight of the edges to it, of the node that is looked at.
    sums: Sums,
    /// The strength of all nodes of each community.
    totals: Vec<f64>,
    sizes: Vec<u32>,
    /// Communities without nodes.
    empty: Vec<u32>,
}

impl Mover {
    /// Moves nodes, of which those in `order` wait at first, until each stays where it is; a node waits
    /// again when a neighbour moves away from it.
    ///
    /// # Errors
    /// When whoever watches says so.
    pub(super) fn settle(
        &mut self,
        graph: &Undirected,
        resolution: Resolution,
        communities: &mut [u32],
        order: &[u32],
        watch: &Watch<'_>,
    ) -> Result<(), Cancelled> {
        self.prepare(graph, communities, order);
        let share = resolution.share(graph);
        let (mut head, mut waiting) = (0, order.len());
        let (mut looked, mut asked) = (0, 0);
        let most = (graph.targets.len() + graph.nodes()).saturating_mul(ROUNDS_MAX);
        while waiting > 0 && looked < most {
            let node = self.queue[head] as usize;
            head = if head + 1 == self.queue.len() { 0 } else { head + 1 };
            waiting -= 1;
            self.waits[node] = false;
            looked += 1 + graph.offsets[node + 1] - graph.offsets[node];
            if looked - asked >= ASK_EVERY {
                asked = looked;
                watch.ask()?;
            }
            let from = communities[node];
            let to = self.best(graph, share, communities, node);
            if to == from {
                continue;
            }
            communities[node] = to;
            self.change(from, to, graph.strengths[node]);
            for &other in &graph.targets[graph.offsets[node]..graph.offsets[node + 1]] {
                if communities[other as usize] != to && !self.waits[other as usize] {
                    self.waits[other as usize] = true;
                    let mut place = head + waiting;
                    if place >= self.queue.len() {
                        place -= self.queue.len();
                    }
                    self.queue[place] = other;
                    waiting += 1;
                }
            }
        }
        Ok(())
    }

    fn prepare(&mut self, graph: &Undirected, communities: &[u32], order: &[u32]) {
        let nodes = graph.nodes();
        self.queue.clear();
        self.queue.extend_from_slice(order);
        self.queue.resize(nodes, 0);
        self.waits.clear();
        self.waits.resize(nodes, false);
        for node in order {
            self.waits[*node as usize] = true;
        }
        self.sums.fit(nodes);
        self.totals.clear();
        self.totals.resize(nodes, 0.0);
        self.sizes.clear();
        self.sizes.resize(nodes, 0);
        for (community, strength) in communities.iter().zip(&graph.strengths) {
            self.totals[*community as usize] += strength;
            self.sizes[*community as usize] += 1;
        }
        self.empty.clear();
        self.empty.extend((0..).zip(&self.sizes).filter(|(_, size)| **size == 0).map(|(community, _)| community));
    }

    /// The community where a node adds most: its own unless another one is better, among equals the first that was met.
    fn best(&mut self, graph: &Undirected, share: f64, communities: &[u32], node: usize) -> u32 {
        let own = communities[node];
        self.sums.add(graph.neighbours(node).map(|(other, weight)| (communities[other], weight)));
        let strength = graph.strengths[node];
        let pull = strength * share;
        let stay = self.sums.of(own) - pull * (self.totals[own as usize] - strength);
        let (mut to, mut most) = (own, stay + strength * GAIN_MIN);
        for (community, sum) in self.sums.iter() {
            let gain = sum - pull * self.totals[community as usize];
            if gain > most && community != own {
                (to, most) = (community, gain);
            }
        }
        self.sums.clear();
        // Alone it adds nothing, which may be more than what it adds here.
        if most < 0.0 && self.sizes[own as usize] > 1 {
            to = self.empty.last().copied().unwrap_or(to);
        }
        to
    }

    fn change(&mut self, from: u32, to: u32, strength: f64) {
        if self.sizes[to as usize] == 0 {
            self.empty.pop();
            self.totals[to as usize] = 0.0;
        }
        self.sizes[to as usize] += 1;
        self.totals[to as usize] += strength;
        self.sizes[from as usize] -= 1;
        self.totals[from as usize] -= strength;
        if self.sizes[from as usize] == 0 {
            self.empty.push(from);
        }
    }
}
