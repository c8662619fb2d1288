//! The shortest path by number of edges: breadth first from both ends.

use crate::error::QueryError;
use crate::index::graph::index;
use crate::index::graph::paths::{Bars, Search};

impl Search<'_, '_> {
    /// The shortest path past the bars.
    pub(super) fn by_hops(&mut self, from: u32, to: u32, bars: &Bars<'_>) -> Result<Option<Vec<u32>>, QueryError> {
        self.forward[index(from)] = 1;
        self.backward[index(to)] = 1;
        if !self.visit(from) || !self.visit(to) {
            return Ok(None);
        }
        let [mut ahead, mut behind] = [vec![from], vec![to]];
        let mut hops = 0;
        while !ahead.is_empty() && !behind.is_empty() {
            let forwards = self.work(&ahead, true) <= self.work(&behind, false);
            let last = if forwards { &mut ahead } else { &mut behind };
            *last = self.widen(last, forwards, from, bars)?;
            hops += usize::from(forwards);
            if self.exhausted {
                return Ok(None);
            }
            let other = if forwards { &self.backward } else { &self.forward };
            let met: Vec<u32> = last.iter().copied().filter(|node| other[index(*node)] != 0).collect();
            if !met.is_empty() {
                return self.join((from, to), met, hops, bars);
            }
        }
        Ok(None)
    }

    /// Number of edges out of the nodes that were visited last.
    fn work(&self, last: &[u32], forwards: bool) -> usize {
        let direction = if forwards { self.route.direction } else { self.route.direction.reversed() };
        last.iter().map(|node| 1 + self.graph.degree(direction, *node)).sum()
    }

    /// The nodes one hop on.
    fn widen(&mut self, last: &[u32], forwards: bool, from: u32, bars: &Bars<'_>) -> Result<Vec<u32>, QueryError> {
        let direction = if forwards { self.route.direction } else { self.route.direction.reversed() };
        let mut pace = self.guard.pace();
        let mut next = Vec::new();
        for node in last {
            pace.steps(1 + self.graph.degree(direction, *node))?;
            let hops = if forwards { &self.forward } else { &self.backward }[index(*node)];
            for target in self.graph.targets(direction, *node) {
                let (first, second) = if forwards { (*node, target) } else { (target, *node) };
                if first == from && bars.seconds.contains(&second) {
                    continue;
                }
                let known = &mut if forwards { &mut self.forward } else { &mut self.backward }[index(target)];
                if *known != 0 {
                    continue;
                }
                *known = hops + 1;
                next.push(target);
                if !self.visit(target) {
                    return Ok(next);
                }
            }
        }
        Ok(next)
    }

    /// The first of the shortest paths, which all lead through where both searches met, so many hops from the start.
    fn join(
        &self,
        (from, to): (u32, u32),
        met: Vec<u32>,
        hops: usize,
        bars: &Bars<'_>,
    ) -> Result<Option<Vec<u32>>, QueryError> {
        let direction = self.route.direction;
        let mut pace = self.guard.pace();
        // Of the nodes that are nearer to the start, those from which a shortest path goes on.
        let mut levels = if hops == 0 { Vec::new() } else { vec![met] };
        while levels.len() < hops {
            let mut level = Vec::new();
            for node in levels.last().into_iter().flatten() {
                pace.steps(1 + self.graph.degree(direction.reversed(), *node))?;
                let before = self.graph.targets(direction.reversed(), *node);
                let nearer = self.forward[index(*node)].saturating_sub(1);
                level.extend(before.filter(|before| self.forward[index(*before)] == nearer));
            }
            level.sort_unstable();
            level.dedup();
            levels.push(level);
        }
        if let Some(met) = levels.first_mut() {
            met.sort_unstable();
        }
        let mut path = vec![from];
        let mut node = from;
        while node != to {
            pace.steps(1 + self.graph.degree(direction, node))?;
            let on = self.graph.targets(direction, node);
            let on = on.filter(|next| node != from || !bars.seconds.contains(next));
            let next = if let Some(level) = levels.pop() {
                on.filter(|next| level.binary_search(next).is_ok()).min()
            } else {
                let far = self.backward[index(node)].saturating_sub(1);
                on.filter(|next| far > 0 && self.backward[index(*next)] == far).min()
            };
            // Only the sides of a stranger hold a way back without the way there.
            let Some(next) = next else { return Ok(None) };
            path.push(next);
            node = next;
        }
        Ok(Some(path))
    }
}
