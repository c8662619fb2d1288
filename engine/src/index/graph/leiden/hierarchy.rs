//! Communities inside communities, until they are small.

use crate::index::control::{Cancelled, Control};
use crate::index::graph::leiden::graph::Undirected;
use crate::index::graph::leiden::partition::{Resolution, grouped, quality};
use crate::index::graph::leiden::random::Random;
use crate::index::graph::leiden::search::{Communities, expect, find};
use crate::index::graph::leiden::watch::Watch;
use rayon::prelude::*;

/// What a hierarchy is made by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HierarchySettings {
    /// Communities with more nodes are divided.
    pub community_max: usize,
    /// Of modularity, on the whole as well as inside each community.
    pub resolution: Resolution,
    /// Where chance begins; see [`Undirected::seed`].
    pub seed: u64,
    /// Levels at most, the coarsest included; as many as 1 are made anyway.
    pub levels_max: usize,
}

/// One level of a hierarchy: the communities of the whole or, further down, those into which the communities of the level before
/// were divided.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    starts: Vec<usize>,
    members: Vec<u32>,
    parents: Vec<u32>,
    modularity: f64,
}

impl Level {
    /// Number of communities. They are numbered by descending size, and those of the same size by their first node.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there are none, which only a graph without nodes has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The nodes of a community, ascending; none where there is no such community.
    #[must_use]
    pub fn members(&self, community: usize) -> &[u32] {
        let bounds = self.starts.get(community).zip(self.starts.get(community.saturating_add(1)));
        bounds.and_then(|(start, end)| self.members.get(*start..*end)).unwrap_or_default()
    }

    /// The community of the level before that a community is a part of; none at the first level.
    #[must_use]
    pub fn parent(&self, community: usize) -> Option<u32> {
        self.parents.get(community).copied()
    }

    /// The modularity on the whole graph of the communities of this level together with those of the levels before that were
    /// not divided.
    #[must_use]
    pub fn modularity(&self) -> f64 {
        self.modularity
    }

    /// The communities with their nodes.
    pub fn communities(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.starts.windows(2).map(|bounds| &self.members[bounds[0]..bounds[1]])
    }
}

/// Divides a graph into communities, see [`crate::index::graph::leiden::communities`], then each that has too many nodes in the same
/// way into smaller ones by the edges inside it alone, and so on, until all are small enough, none divides any more or there are
/// as many levels as there may be. The first level is the coarsest.
///
/// A community that was not divided is a leaf: the next level tells nothing of its nodes. A leaf has too many nodes where no division
/// adds modularity, as in a star, or at the last level.
///
/// Communities of one level are divided at the same time, on the current rayon pool, whose number of threads does not show. Each
/// level takes as long as the communities of so many nodes and edges, and memory for a copy of what is divided.
///
/// # Errors
/// When `control` says so.
pub fn hierarchy(
    graph: &Undirected,
    settings: HierarchySettings,
    control: &dyn Control,
) -> Result<Vec<Level>, Cancelled> {
    let watch = Watch::new(control);
    expect(graph, &watch);
    let Communities { mut of, count, modularity } = find(graph, settings.resolution, settings.seed, &watch)?;
    let (starts, members) = grouped(&of, count);
    let first = Level { starts, members, parents: Vec::new(), modularity };
    // From here on communities are named by their first nodes, which no two ever share.
    first.communities().for_each(|nodes| nodes.iter().for_each(|node| of[*node as usize] = nodes[0]));
    let mut levels = vec![first];
    while levels.len() < settings.levels_max {
        let number = levels.len();
        let Some(level) = levels.last() else { break };
        let Some(next) = divided(graph, settings, level, number, &mut of, &watch)? else { break };
        levels.push(next);
    }
    Ok(levels)
}

/// The communities into which those of a level that are too large are divided, if any is. In `of` each node has the
/// first node of its community in the finest division.
fn divided(
    graph: &Undirected,
    settings: HierarchySettings,
    level: &Level,
    number: usize,
    of: &mut [u32],
    watch: &Watch<'_>,
) -> Result<Option<Level>, Cancelled> {
    let large: Vec<(usize, &[u32])> =
        level.communities().enumerate().take_while(|(_, members)| members.len() > settings.community_max).collect();
    let mut places = vec![u32::MAX; graph.nodes()];
    for (_, members) in &large {
        (0..).zip(*members).for_each(|(place, node)| places[*node as usize] = place);
    }
    let finest: &[u32] = of;
    let divide = |(parent, members): (usize, &[u32])| {
        let inside = graph.induced(members, &places, finest);
        expect(&inside, watch);
        let seed = Random::apart(settings.seed, (number as u64) << 32 | parent as u64).next();
        let found = find(&inside, settings.resolution, seed, watch)?;
        drop(inside);
        let (starts, local) = grouped(&found.of, found.count);
        let part =
            |bounds: &[usize]| local[bounds[0]..bounds[1]].iter().map(|place| members[*place as usize]).collect();
        let parts: Vec<Vec<u32>> = starts.windows(2).map(part).collect();
        Ok(parts.into_iter().map(move |nodes| (parent, nodes)).collect())
    };
    let parts = large.into_par_iter().map(divide).collect::<Result<Vec<Vec<(usize, Vec<u32>)>>, Cancelled>>()?;
    let mut parts: Vec<(usize, Vec<u32>)> = parts.into_iter().filter(|parts| parts.len() > 1).flatten().collect();
    if parts.is_empty() {
        return Ok(None);
    }
    parts.sort_by_key(|(_, nodes)| (std::cmp::Reverse(nodes.len()), nodes.first().copied()));
    let mut next = Level { starts: vec![0], members: Vec::new(), parents: Vec::new(), modularity: 0.0 };
    for (parent, nodes) in parts {
        let first = nodes.first().copied().unwrap_or_default();
        for node in &nodes {
            of[*node as usize] = first;
        }
        next.parents.push(u32::try_from(parent).unwrap_or(u32::MAX));
        next.members.extend(nodes);
        next.starts.push(next.members.len());
    }
    next.modularity = quality(graph, of, settings.resolution);
    Ok(Some(next))
}
