//! The relations between candidates over all segments, each the sum of its live sources.

use crate::error::Damage;
use crate::project::links::candidates::Candidates;
use crate::projection::Related;
use crate::snapshot::Snapshot;
use hedgerow_format::EntitySlot;
use rayon::prelude::*;
use std::collections::{BTreeSet, HashMap};

/// Relations between candidates, and their labels, ascending as bytes.
pub(super) struct Relations<'s> {
    pub predicates: Vec<&'s str>,
    /// Ascending by subject, object and predicate.
    pub edges: Vec<Related>,
}

/// The sources that count in one segment: its labels, and a relation a source, with rows of these.
type Sourced<'s> = (Vec<&'s str>, Vec<Related>);

impl<'s> Relations<'s> {
    /// Reads the relations of all segments.
    pub(super) fn of(snapshot: &'s Snapshot, candidates: &Candidates<'_>) -> Result<Self, Damage> {
        let segments = 0..snapshot.segments().len();
        let sourced = segments.into_par_iter().map(|position| sources(snapshot, candidates, position));
        let sourced: Vec<Sourced<'s>> = sourced.collect::<Result<_, Damage>>()?;
        let predicates: BTreeSet<&str> = sourced.iter().flat_map(|(labels, _)| labels.iter().copied()).collect();
        let predicates: Vec<&str> = predicates.into_iter().collect();
        let mut edges = Vec::with_capacity(sourced.iter().map(|(_, edges)| edges.len()).sum());
        for (labels, sources) in sourced {
            let rows: Vec<u32> = labels.iter().map(|label| row(predicates.binary_search(label))).collect();
            let place = |local: u32| usize::try_from(local).ok().and_then(|local| rows.get(local).copied());
            edges.extend(
                sources
                    .into_iter()
                    .filter_map(|source| Some(Related { predicate: place(source.predicate)?, ..source })),
            );
        }
        Ok(Self { predicates, edges: summed(edges) })
    }
}

fn row(found: Result<usize, usize>) -> u32 {
    found.ok().and_then(|row| u32::try_from(row).ok()).unwrap_or(u32::MAX)
}

fn sources<'s>(snapshot: &'s Snapshot, candidates: &Candidates<'_>, position: usize) -> Result<Sourced<'s>, Damage> {
    let segment = &snapshot.segments()[position];
    let (mut labels, mut rows, mut edges) = (Vec::new(), HashMap::new(), Vec::new());
    for relation in segment.relations()?.iter() {
        let ends = [relation.subject, relation.object].map(|end| candidates.number(position, end));
        let [Some(subject), Some(object)] = ends else { continue };
        let mut sources = snapshot.evidence(segment, &relation)?.peekable();
        if sources.peek().is_none() {
            continue;
        }
        let place = (relation.predicate.offset, relation.predicate.length);
        let predicate = if let Some(row) = rows.get(&place) {
            *row
        } else {
            labels.push(segment.string(relation.predicate)?);
            let row = u32::try_from(labels.len() - 1).unwrap_or(u32::MAX);
            rows.insert(place, row);
            row
        };
        edges.extend(sources.map(|source| Related { subject, object, predicate, weight: source.weight }));
    }
    for found in snapshot.edge_lists(segment)? {
        let (_, list) = found?;
        let predicate = u32::try_from(labels.len()).unwrap_or(u32::MAX);
        labels.push(list.predicate);
        let number = |node: usize| candidates.number(position, list.entity(node)?.0);
        let numbers: Vec<Option<u32>> = (0..list.nodes.len()).map(number).collect();
        edges.reserve(list.targets.len());
        for (node, subject) in numbers.iter().enumerate() {
            for edge in list.edges_from(node) {
                let target = list.targets.get(edge).and_then(|target| numbers.get(EntitySlot(target).index()).copied());
                let (Some(subject), Some(object)) = (*subject, target.flatten()) else { continue };
                edges.push(Related { subject, object, predicate, weight: list.weight(edge) });
            }
        }
    }
    Ok((labels, edges))
}

/// One relation for all sources of it, in order; weights are added in ascending order, so that no history of segments shows.
fn summed(mut sources: Vec<Related>) -> Vec<Related> {
    let key = |edge: &Related| (edge.subject, edge.object, edge.predicate);
    sources.par_sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.weight.total_cmp(&b.weight)));
    sources.dedup_by(|next, kept| {
        let same = key(next) == key(kept);
        if same {
            kept.weight += next.weight;
        }
        same
    });
    sources
}
