//! Graphs for tests: edges as bytes, small random graphs, and bytes of a stranger.

use crate::index::control::Control;
use crate::index::graph::{Adjacency, Graph};
use crate::index::guard::{Guard, QueryLimits};
use hedgerow_format::U32s;

/// Ten nodes, the last of them alone: from, to, weight. What igraph 1.0 computes on it stands in tests.
pub const SMALL: [(u32, u32, f32); 14] = [
    (0, 1, 1.0),
    (0, 2, 2.0),
    (1, 2, 0.5),
    (1, 3, 1.0),
    (2, 0, 3.0),
    (2, 4, 1.0),
    (3, 5, 0.25),
    (4, 3, 2.0),
    (4, 5, 1.0),
    (5, 6, 1.0),
    (6, 4, 1.5),
    (6, 7, 0.5),
    (8, 7, 1.0),
    (3, 1, 4.0),
];

/// The bytes of a graph.
#[derive(Debug)]
pub struct Sample {
    pub out: Side,
    pub into: Side,
}

/// The bytes of one side.
#[derive(Debug)]
pub struct Side {
    pub offsets: Vec<u8>,
    pub targets: Vec<u8>,
    pub weights: Vec<u8>,
}

impl Sample {
    /// A graph of so many nodes with these edges: from, to, weight.
    pub fn new(nodes: u32, edges: &[(u32, u32, f32)]) -> Self {
        let back: Vec<_> = edges.iter().map(|(from, to, weight)| (*to, *from, *weight)).collect();
        Self { out: Side::new(nodes, edges), into: Side::new(nodes, &back) }
    }

    /// A graph with these edges, each of weight 1.
    pub fn plain(nodes: u32, edges: &[(u32, u32)]) -> Self {
        Self::new(nodes, &edges.iter().map(|(from, to)| (*from, *to, 1.0)).collect::<Vec<_>>())
    }

    /// A random graph whose edges differ and have weights of quarters up to 4.
    pub fn random(nodes: u32, edges: u32, seed: u64) -> Self {
        let mut random = Random(seed);
        let mut made: Vec<_> = (0..edges).map(|_| (random.below(nodes), random.below(nodes))).collect();
        made.sort_unstable();
        made.dedup();
        let weigh = |random: &mut Random| f32::from(u8::try_from(random.below(16) + 1).unwrap()) / 4.0;
        let made: Vec<_> = made.into_iter().map(|(from, to)| (from, to, weigh(&mut random))).collect();
        Self::new(nodes, &made)
    }

    /// Bytes that no one checked: rows that overlap and run backwards, targets that are no node, weights of any bits.
    pub fn strange(nodes: u32, edges: u32, seed: u64) -> Self {
        let mut random = Random(seed);
        let mut side = || Side {
            offsets: bytes((0..=nodes).map(|_| random.below(edges + 9))),
            targets: bytes(
                (0..edges)
                    .map(|_| if random.below(9) == 0 { u32::MAX - random.below(3) } else { random.below(nodes + 3) }),
            ),
            weights: bytes((0..edges / 2).map(|_| match random.below(6) {
                0 => f32::NAN.to_bits(),
                1 => f32::INFINITY.to_bits(),
                2 => (-1.0_f32).to_bits(),
                3 => 0,
                _ => random.below(u32::MAX),
            })),
        };
        Self { out: side(), into: side() }
    }

    /// A view of the graph.
    pub fn graph(&self) -> Graph<'_> {
        Graph { out: self.out.view(), into: self.into.view() }
    }
}

impl Side {
    fn new(nodes: u32, edges: &[(u32, u32, f32)]) -> Self {
        let mut edges = edges.to_vec();
        edges.sort_by_key(|(from, to, _)| (*from, *to));
        let before = |node| u32::try_from(edges.partition_point(|(from, ..)| *from < node)).unwrap();
        Self {
            offsets: bytes((0..=nodes).map(before)),
            targets: bytes(edges.iter().map(|edge| edge.1)),
            weights: bytes(edges.iter().map(|edge| edge.2.to_bits())),
        }
    }

    fn view(&self) -> Adjacency<'_> {
        let numbers = |bytes| U32s::new("a side", bytes).unwrap();
        Adjacency::new(numbers(&self.offsets), numbers(&self.targets), numbers(&self.weights))
    }
}

fn bytes(values: impl Iterator<Item = u32>) -> Vec<u8> {
    values.flat_map(u32::to_le_bytes).collect()
}

/// A sequence of numbers that looks random and is the same every time.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number below `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(end.max(1))).unwrap()
    }
}

/// Stops everything.
pub struct Stopped;

impl Control for Stopped {
    fn advance(&self, _: u64, _: u64) {}

    fn cancelled(&self) -> bool {
        true
    }
}

/// A guard that refuses nothing.
pub fn free() -> Guard<'static> {
    Guard::new(QueryLimits::default())
}

/// Numbers as another program prints them.
pub fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// Whether two lists of numbers are the same but for so much.
pub fn near(found: &[f64], expected: &[f64], most: f64) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= most)
}

/// Runs something with one thread and with three, and expects the same.
pub fn same_on_any_threads<T: PartialEq + std::fmt::Debug + Send>(run: impl Fn() -> T + Sync) -> T {
    let [one, three] = [1, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(&run)
    });
    assert_eq!(one, three);
    one
}
