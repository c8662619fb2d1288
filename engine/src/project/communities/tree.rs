//! Communities as they are written: those of a level in the order of their members, which stand together at every level.

use crate::index::graph::leiden::Level;
use std::ops::Range;

/// A community at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// The community of the level before that it is a part of, as it is placed there.
    pub parent: Option<u32>,
    /// Its members among all.
    pub members: Range<usize>,
}

/// All communities with more than one member.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    pub levels: Vec<Vec<Placed>>,
    /// Entities; those of a community stand together, and ascend where it is not divided.
    pub members: Vec<u32>,
}

impl Tree {
    pub(super) fn of(found: &[Level]) -> Self {
        let mut tree = Self { levels: vec![Vec::new(); found.len()], members: Vec::new() };
        let parts: Vec<Vec<Vec<usize>>> = found.iter().zip(found.iter().skip(1)).map(parts).collect();
        for number in numbers(found, 0) {
            tree.place(found, &parts, 0, number, None);
        }
        tree.levels.retain(|level| !level.is_empty());
        tree
    }

    /// Places a community: its parts first, then what is in none of them.
    fn place(&mut self, found: &[Level], parts: &[Vec<Vec<usize>>], level: usize, number: usize, parent: Option<u32>) {
        let (row, first) = (self.levels[level].len(), self.members.len());
        self.levels[level].push(Placed { parent, members: first..first });
        let mut rest: Vec<u32> = found[level].members(number).to_vec();
        let here = parts.get(level).and_then(|parts| parts.get(number)).map_or(&[][..], Vec::as_slice);
        for part in here {
            self.place(found, parts, level + 1, *part, u32::try_from(row).ok());
        }
        let mut placed = self.members[first..].to_vec();
        placed.sort_unstable();
        rest.retain(|member| placed.binary_search(member).is_err());
        self.members.extend(rest);
        self.levels[level][row].members.end = self.members.len();
    }
}

/// The communities of a level with more than one member: they come before all others.
fn numbers(found: &[Level], level: usize) -> Range<usize> {
    let many = found.get(level).map_or(0, |level| level.communities().take_while(|nodes| nodes.len() > 1).count());
    0..many
}

/// The parts with more than one member of each community of a level.
fn parts((level, next): (&Level, &Level)) -> Vec<Vec<usize>> {
    let mut parts = vec![Vec::new(); level.len()];
    for (number, nodes) in next.communities().enumerate().filter(|(_, nodes)| nodes.len() > 1) {
        debug_assert!(!nodes.is_empty());
        let parent = next.parent(number).and_then(|parent| usize::try_from(parent).ok());
        parent.and_then(|parent| parts.get_mut(parent)).into_iter().for_each(|parts| parts.push(number));
    }
    parts
}
