//! Plain searches over the edges of a graph by name.

use hedgerow::{Direction, PathCost};
use std::collections::{BTreeMap, VecDeque};

/// Subject, label, object, weight.
pub type Edge = (String, String, String, f32);

/// Where steps out of each node lead, and their weights.
pub type Steps = BTreeMap<String, Vec<(String, f32)>>;

/// Steps out of a node: where to and the weight.
pub fn steps(edges: &[Edge], direction: Direction) -> Steps {
    let mut steps: Steps = BTreeMap::new();
    for (subject, _, object, weight) in edges {
        steps.entry(subject.clone()).or_default();
        steps.entry(object.clone()).or_default();
        if direction != Direction::In {
            steps.entry(subject.clone()).or_default().push((object.clone(), *weight));
        }
        if direction != Direction::Out {
            steps.entry(object.clone()).or_default().push((subject.clone(), *weight));
        }
    }
    steps
}

/// How many steps lead to each node that can be reached.
pub fn hops(steps: &Steps, from: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::from([(from.to_owned(), 0)]);
    let mut open = VecDeque::from([from.to_owned()]);
    while let Some(node) = open.pop_front() {
        let hop = found[&node];
        for (target, _) in &steps[&node] {
            if !found.contains_key(target) {
                found.insert(target.clone(), hop + 1);
                open.push_back(target.clone());
            }
        }
    }
    found
}

/// What the cheapest way to each node costs, by trying every step as often as there are nodes.
pub fn costs(steps: &Steps, from: &str, cost: PathCost) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::from([(from.to_owned(), 0.0)]);
    for _ in 0..steps.len() {
        for (node, out) in steps {
            let Some(before) = found.get(node).copied() else { continue };
            for (target, weight) in out {
                let step = match cost {
                    PathCost::Hops => 1.0,
                    PathCost::Inverse => 1.0 / f64::from(*weight),
                    PathCost::Weight => f64::from(*weight),
                };
                let known = found.entry(target.clone()).or_insert(f64::INFINITY);
                *known = known.min(before + step);
            }
        }
    }
    found
}

/// Ranks by plain iteration; the walk starts anew at the seed, or anywhere.
pub fn ranks(steps: &Steps, seed: Option<&str>, weighted: bool) -> BTreeMap<String, f64> {
    let share = |node: &str| match seed {
        Some(seed) => f64::from(u8::from(seed == node)),
        None => 1.0 / f64::from(u32::try_from(steps.len()).expect("there are few")),
    };
    let mut ranks: BTreeMap<String, f64> = steps.keys().map(|node| (node.clone(), share(node))).collect();
    for _ in 0..400 {
        let mut next: BTreeMap<String, f64> = steps.keys().map(|node| (node.clone(), 0.15 * share(node))).collect();
        for (node, out) in steps {
            let of = |weight: f32| if weighted { f64::from(weight) } else { 1.0 };
            let all: f64 = out.iter().map(|(_, weight)| of(*weight)).sum();
            for (target, weight) in out {
                *next.get_mut(target).expect("it is a node") += 0.85 * ranks[node] * of(*weight) / all;
            }
            if out.is_empty() {
                for (other, rank) in &mut next {
                    *rank += 0.85 * ranks[node] * share(other);
                }
            }
        }
        ranks = next;
    }
    ranks
}
