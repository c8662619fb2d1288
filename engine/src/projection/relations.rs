//! The relations of a links projection: between all live entities, over all segments, in both directions.

use crate::error::Damage;
use crate::index::graph::Adjacency;
use crate::projection::Links;
use hedgerow_format::file::FileBuilder;
use hedgerow_format::projection::LinkPredicateRow;
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::{EntitySlot, FormatError, Record, TextRef, U32s};
use std::io::{self, Write};

/// A relation between two live entities: the sum of its live sources.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Related {
    /// Slot of the entity that it starts from.
    pub subject: u32,
    /// Slot of the entity that it leads to.
    pub object: u32,
    /// Which label it has.
    pub predicate: u32,
    /// Its weight.
    pub weight: f32,
}

/// Relations with their labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RelationList {
    /// Where the labels stand among the names of entities, ascending as bytes; not empty.
    pub predicates: Vec<TextRef>,
    /// Ascending by subject, object and predicate.
    pub edges: Vec<Related>,
}

/// The sections of an adjacency: offsets, targets, labels, weights.
type Sectioned = [SectionKind; 4];

const OUT: Sectioned = [
    SectionKind::LinkRelationOffsets,
    SectionKind::LinkRelations,
    SectionKind::LinkRelationPredicates,
    SectionKind::LinkRelationWeights,
];
const BACK: Sectioned = [
    SectionKind::LinkRelatingOffsets,
    SectionKind::LinkRelating,
    SectionKind::LinkRelatingPredicates,
    SectionKind::LinkRelatingWeights,
];

/// Relations on one side of an entity, ascending by the entity at their other end, then by label.
#[derive(Clone, Copy, Debug)]
pub struct RelatedRow<'a> {
    targets: U32s<'a>,
    predicates: U32s<'a>,
    weights: U32s<'a>,
}

impl RelatedRow<'_> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// The other end, the label and the weight of each.
    pub fn iter(&self) -> impl Iterator<Item = (EntitySlot, u32, f32)> {
        self.targets.iter().enumerate().map(|(at, target)| {
            let weight = self.weights.get(at).map_or(1.0, f32::from_bits);
            (EntitySlot(target), self.predicates.get(at).unwrap_or(0), weight)
        })
    }
}

impl Links {
    /// The relations that start from an entity.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn relations_from(&self, entity: EntitySlot) -> Result<RelatedRow<'_>, Damage> {
        self.related(&OUT, entity)
    }

    /// The relations that lead to an entity.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn relations_to(&self, entity: EntitySlot) -> Result<RelatedRow<'_>, Damage> {
        self.related(&BACK, entity)
    }

    fn related(&self, sections: &Sectioned, entity: EntitySlot) -> Result<RelatedRow<'_>, Damage> {
        let section = |kind| self.file.u32s(kind).map_err(|error| self.file.damage(error));
        let [offsets, targets, predicates, weights] = *sections;
        let range = section(offsets)?.row(entity.index());
        Ok(RelatedRow {
            targets: section(targets)?.slice(range.clone()),
            predicates: section(predicates)?.slice(range.clone()),
            weights: section(weights)?.slice(range),
        })
    }

    /// All relations along their direction, and against it. Nodes are slots of entities.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn relations(&self) -> Result<[Adjacency<'_>; 2], Damage> {
        let section = |kind| self.file.u32s(kind).map_err(|error| self.file.damage(error));
        let adjacency = |[offsets, targets, _, weights]: Sectioned| -> Result<_, Damage> {
            Ok(Adjacency::new(section(offsets)?, section(targets)?, section(weights)?))
        };
        Ok([adjacency(OUT)?, adjacency(BACK)?])
    }

    /// The labels of all relations along their direction, and against it, beside [`Self::relations`]; empty where all have the
    /// first.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn relation_labels(&self) -> Result<[U32s<'_>; 2], Damage> {
        let section = |kind| self.file.u32s(kind).map_err(|error| self.file.damage(error));
        let ([_, _, out, _], [_, _, back, _]) = (OUT, BACK);
        Ok([section(out)?, section(back)?])
    }

    /// A label of relations.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn predicate(&self, row: u32) -> Result<&str, Damage> {
        let rows = self.file.rows::<LinkPredicateRow>(SectionKind::LinkPredicates);
        let rows = rows.map_err(|error| self.file.damage(error))?;
        let shape = || FormatError::Shape {
            section: SectionKind::LinkPredicates.name(),
            expected: format!("a label {row}"),
            found: "a row that is not there".into(),
        };
        let found = rows.get(EntitySlot(row).index()).ok_or_else(|| self.file.damage(shape()))?;
        self.string(found.name)
    }

    /// The number of labels that relations have.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn predicates(&self) -> Result<u32, Damage> {
        let rows = self.file.rows::<LinkPredicateRow>(SectionKind::LinkPredicates);
        Ok(u32::try_from(rows.map_err(|error| self.file.damage(error))?.len()).unwrap_or(u32::MAX))
    }
}

/// The arrays of one direction, as they lie in a file.
struct Columns {
    offsets: Vec<u32>,
    targets: Vec<u32>,
    predicates: Vec<u32>,
    weights: Vec<u32>,
}

impl Columns {
    /// Lays out edges by one end, which `ends` gives first. Edges ascend by the other end and by label.
    fn of(edges: &[Related], entities: usize, labelled: bool, ends: impl Fn(&Related) -> (u32, u32)) -> Self {
        let weighted = edges.iter().any(|edge| edge.weight.to_bits() != 1.0_f32.to_bits());
        let column = |wanted: bool| vec![0; if wanted { edges.len() } else { 0 }];
        let mut columns = Self {
            offsets: vec![0; entities + 1],
            targets: column(true),
            predicates: column(labelled),
            weights: column(weighted),
        };
        for edge in edges {
            columns.offsets[EntitySlot(ends(edge).0).index() + 1] += 1;
        }
        for row in 0..entities {
            columns.offsets[row + 1] += columns.offsets[row];
        }
        let mut places = columns.offsets.clone();
        for edge in edges {
            let (row, target) = ends(edge);
            let place = &mut places[EntitySlot(row).index()];
            let at = EntitySlot(*place).index();
            *place += 1;
            columns.targets[at] = target;
            columns.predicates.get_mut(at).into_iter().for_each(|predicate| *predicate = edge.predicate);
            columns.weights.get_mut(at).into_iter().for_each(|weight| *weight = edge.weight.to_bits());
        }
        columns
    }

    fn write<W: Write>(&self, file: &mut FileBuilder<W>, sections: Sectioned) -> io::Result<()> {
        for (kind, column) in sections.into_iter().zip([&self.offsets, &self.targets, &self.predicates, &self.weights])
        {
            let bytes: Vec<u8> = column.iter().flat_map(|value| value.to_le_bytes()).collect();
            file.section(kind, &bytes)?;
        }
        Ok(())
    }
}

/// Writes the relations between so many entities.
///
/// # Errors
/// Those of the file; [`FormatError::Limit`] inside when there are too many for one.
pub(super) fn write<W: Write>(file: &mut FileBuilder<W>, relations: &RelationList, entities: usize) -> io::Result<()> {
    let RelationList { predicates, edges } = relations;
    if u32::try_from(edges.len()).is_err() {
        let error = FormatError::Limit { what: "the number of relations", limit: u64::from(u32::MAX) };
        return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
    }
    let mut rows = Vec::with_capacity(predicates.len() * LinkPredicateRow::SIZE);
    for name in predicates {
        LinkPredicateRow { name: *name }.encode(&mut rows);
    }
    file.section(SectionKind::LinkPredicates, &rows)?;
    let labelled = predicates.len() > 1;
    Columns::of(edges, entities, labelled, |edge| (edge.subject, edge.object)).write(file, OUT)?;
    Columns::of(edges, entities, labelled, |edge| (edge.object, edge.subject)).write(file, BACK)
}
