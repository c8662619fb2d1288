//! The shortest path by what edges cost: from its end, cheapest first.

use crate::error::QueryError;
use crate::index::graph::index;
use crate::index::graph::paths::{BARRED, Bars, Search};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nodes whose way to the end is known so far: the bits of its cost, its hops, the node; the cheapest comes first.
type Open = BinaryHeap<Reverse<(u64, u32, u32)>>;

impl Search<'_, '_> {
    /// The shortest path past the bars.
    pub(super) fn by_cost(&mut self, from: u32, to: u32, bars: &Bars<'_>) -> Result<Option<Vec<u32>>, QueryError> {
        let mut open = Open::new();
        self.backward[index(to)] = 1;
        self.costs[index(to)] = 0.0;
        self.touched.push(to);
        open.push(Reverse((0, 1, to)));
        let (mut pace, mut most) = (self.guard.pace(), 0);
        let back = self.route.direction.reversed();
        while let Some(Reverse((cost, hops, node))) = open.pop() {
            if (cost, hops) != (self.costs[index(node)].to_bits(), self.backward[index(node)]) {
                continue;
            }
            if !self.visit(node) {
                return Ok(None);
            }
            if node == from {
                return self.follow(from, to, bars);
            }
            pace.steps(1 + self.graph.degree(back, node))?;
            self.relax(node, from, bars, &mut open);
            self.guard.hold::<(u64, u32, u32)>(open.len().saturating_sub(most))?;
            most = most.max(open.len());
        }
        Ok(None)
    }

    /// Ways to the end that go on over a node.
    fn relax(&mut self, node: u32, from: u32, bars: &Bars<'_>, open: &mut Open) {
        let (beyond, hops) = (self.costs[index(node)], self.backward[index(node)] + 1);
        for (before, weight) in self.graph.edges(self.route.direction.reversed(), node) {
            let barred = before == from && bars.seconds.contains(&node);
            let Some(cost) = self.route.cost.of(weight).map(|cost| cost + beyond).filter(|cost| cost.is_finite())
            else {
                continue;
            };
            let (known, known_hops) = (&mut self.costs[index(before)], &mut self.backward[index(before)]);
            if barred || *known_hops == BARRED || (*known_hops != 0 && (*known, *known_hops) <= (cost, hops)) {
                continue;
            }
            if *known_hops == 0 {
                self.touched.push(before);
            }
            (*known, *known_hops) = (cost, hops);
            open.push(Reverse((cost.to_bits(), hops, before)));
        }
    }

    /// From the start to the next node, each time the lowest, from which the rest of the way costs what it must.
    fn follow(&self, from: u32, to: u32, bars: &Bars<'_>) -> Result<Option<Vec<u32>>, QueryError> {
        let mut pace = self.guard.pace();
        let mut path = vec![from];
        let mut node = from;
        while node != to {
            pace.steps(1 + self.graph.degree(self.route.direction, node))?;
            let (cost, hops) = (self.costs[index(node)].to_bits(), self.backward[index(node)].saturating_sub(1));
            let fits = |(next, weight): &(u32, f32)| {
                let rest = self.route.cost.of(*weight).map(|cost| (cost + self.costs[index(*next)]).to_bits());
                let barred = node == from && bars.seconds.contains(next);
                !barred && hops > 0 && self.backward[index(*next)] == hops && rest == Some(cost)
            };
            let on = self.graph.edges(self.route.direction, node).filter(fits);
            // Only the sides of a stranger hold a way back without the way there.
            let Some(next) = on.map(|(next, _)| next).min() else { return Ok(None) };
            path.push(next);
            node = next;
        }
        Ok(Some(path))
    }
}
