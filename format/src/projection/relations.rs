//! The relations of a links projection: an adjacency in each direction, with labels and weights beside the targets.

use crate::projection::LinkPredicateRow;
use crate::record::to_usize;
use crate::section::{SectionKind, Sections};
use crate::{FormatError, U32s};

/// The sections of one direction.
struct Direction {
    offsets: SectionKind,
    targets: SectionKind,
    predicates: SectionKind,
    weights: SectionKind,
}

const OUT: Direction = Direction {
    offsets: SectionKind::LinkRelationOffsets,
    targets: SectionKind::LinkRelations,
    predicates: SectionKind::LinkRelationPredicates,
    weights: SectionKind::LinkRelationWeights,
};
const BACK: Direction = Direction {
    offsets: SectionKind::LinkRelatingOffsets,
    targets: SectionKind::LinkRelating,
    predicates: SectionKind::LinkRelatingPredicates,
    weights: SectionKind::LinkRelatingWeights,
};

/// The arrays of one direction.
struct Arrays<'a> {
    of: Direction,
    offsets: U32s<'a>,
    targets: U32s<'a>,
    predicates: U32s<'a>,
    weights: U32s<'a>,
}

fn broken(section: SectionKind, rule: &'static str, row: usize) -> FormatError {
    FormatError::Invariant { section: section.name(), rule, row: row as u64 }
}

/// S-LNK-4 to S-LNK-7 of a links projection with so many entities.
pub(super) fn validate<S: Sections>(file: &S, entities: usize) -> Result<(), FormatError> {
    let predicates = predicates(file)?;
    let (out, back) = (Arrays::of(file, OUT)?, Arrays::of(file, BACK)?);
    out.validate(entities, predicates)?;
    back.validate(entities, predicates)?;
    out.mirrors(&back, entities)
}

/// S-LNK-4: labels strictly increase as bytes and are not empty; their number.
fn predicates<S: Sections>(file: &S) -> Result<usize, FormatError> {
    let rows = file.rows::<LinkPredicateRow>(SectionKind::LinkPredicates)?;
    let mut before = "";
    for (row, LinkPredicateRow { name }) in rows.iter().enumerate() {
        let name = file.string(name)?;
        if name <= before {
            return Err(broken(SectionKind::LinkPredicates, "S-LNK-4", row));
        }
        before = name;
    }
    Ok(rows.len())
}

impl<'a> Arrays<'a> {
    fn of<S: Sections>(file: &'a S, of: Direction) -> Result<Self, FormatError> {
        let (offsets, targets) = (file.u32s(of.offsets)?, file.u32s(of.targets)?);
        let (predicates, weights) = (file.u32s(of.predicates)?, file.u32s(of.weights)?);
        Ok(Self { of, offsets, targets, predicates, weights })
    }

    /// S-LNK-5: offsets rise from zero to the number of targets; entities that exist and labels that exist strictly increase
    /// as pairs within a row. S-LNK-6: weights are finite and above zero.
    fn validate(&self, entities: usize, predicates: usize) -> Result<(), FormatError> {
        let fits = |beside: &U32s<'_>| beside.is_empty() || beside.len() == self.targets.len();
        let labelled = predicates > 1 && self.predicates.len() == self.targets.len();
        let unlabelled = self.predicates.is_empty() && (predicates == 1 || self.targets.is_empty());
        if !labelled && !unlabelled {
            return Err(broken(self.of.predicates, "S-LNK-5", self.predicates.len()));
        }
        if self.offsets.len() != entities.saturating_add(1) || self.offsets.get(0) != Some(0) {
            return Err(broken(self.of.offsets, "S-LNK-5", self.offsets.len()));
        }
        for row in 0..entities {
            if self.offsets.get(row) > self.offsets.get(row.saturating_add(1)) {
                return Err(broken(self.of.offsets, "S-LNK-5", row));
            }
            let mut before = None;
            for place in self.offsets.row(row) {
                let edge = self.targets.get(place).map(|target| (target, self.predicate(place)));
                let known = edge.is_some_and(|edge| to_usize(edge.0) < entities && to_usize(edge.1) < predicates);
                if before >= edge || !known {
                    return Err(broken(self.of.targets, "S-LNK-5", row));
                }
                before = edge;
            }
        }
        if self.offsets.get(entities).map(to_usize) != Some(self.targets.len()) {
            return Err(broken(self.of.offsets, "S-LNK-5", entities));
        }
        let weighed = |bits: u32| f32::from_bits(bits).is_finite() && f32::from_bits(bits) > 0.0;
        match self.weights.iter().position(|bits| !weighed(bits)) {
            None if fits(&self.weights) => Ok(()),
            place => Err(broken(self.of.weights, "S-LNK-6", place.unwrap_or(self.weights.len()))),
        }
    }

    fn predicate(&self, place: usize) -> u32 {
        self.predicates.get(place).unwrap_or(0)
    }

    /// S-LNK-7: the other direction holds the same relations with the same labels and weights. Both have been validated.
    fn mirrors(&self, back: &Self, entities: usize) -> Result<(), FormatError> {
        if self.targets.len() != back.targets.len() || self.weights.len() != back.weights.len() {
            return Err(broken(back.of.targets, "S-LNK-7", 0));
        }
        // Rows ascend, so each relation is the next one of its row in the other direction.
        let mut places: Vec<usize> = back.offsets.iter().map(to_usize).collect();
        for row in 0..entities {
            for place in self.offsets.row(row) {
                let target = self.targets.get(place).map_or(usize::MAX, to_usize);
                let next = places.get_mut(target).ok_or_else(|| broken(back.of.targets, "S-LNK-7", row))?;
                let turned = back.targets.get(*next).map(to_usize) == Some(row)
                    && back.predicate(*next) == self.predicate(place)
                    && back.weights.get(*next) == self.weights.get(place);
                if !turned || !back.offsets.row(target).contains(next) {
                    return Err(broken(back.of.targets, "S-LNK-7", row));
                }
                *next = next.saturating_add(1);
            }
        }
        Ok(())
    }
}
