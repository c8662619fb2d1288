//! Edges from several signals of chunks: their vectors, entities, words, titles, and the columns of tables.

use crate::error::{CommitError, Damage, EdgeError, QueryError};
use crate::index::control::{Cancelled, Control};
use crate::index::edges::composite::{Composite, CompositeRules, Relation, build};
use crate::index::signals::{ColumnsBuilder, Dense, Overlap, SetsBuilder, Signal, Weighing, columns_of};
use crate::project::Fault;
use crate::project::edges::{decode, key_ranks};
use crate::snapshot::{ChunkView, Snapshot};
use hedgerow_format::edges::PairKind;
use hedgerow_format::{ChunkId, EntitySlot};

/// What makes chunks similar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Their vectors of a space; a chunk without one is similar to none.
    Vectors(String),
    /// The entities that they mention, as the links of the store tell them: those of the last refresh.
    Entities(Weighing),
    /// The words of their text, see [`SetsBuilder::push_words`].
    Words(Weighing),
    /// The words of their document's title.
    Titles(Weighing),
    /// The columns of tables, see [`columns_of`]; a chunk that is no table has none.
    Columns,
}

/// Edges of chunks, and the thresholds that they passed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JoinedChunks {
    /// The chunk of each row: ascending, tables last where they are joined with others.
    pub chunks: Vec<ChunkId>,
    /// The edges of these rows.
    pub composite: Composite,
}

/// Computes edges of chunks by several signals, in the order of `sources`: those of a kind of pairs, or all; nothing is written.
/// The result depends on what is live alone, and on the links where entities are asked for.
///
/// Reads what the sources need, once each; see [`build`] for the cost of the rest.
///
/// # Errors
/// [`EdgeError`]: a space that is not there, damage, or a control that stops it.
pub fn join_chunks(
    snapshot: &Snapshot,
    kind: Option<PairKind>,
    sources: &[Source],
    rules: &CompositeRules,
    control: &dyn Control,
) -> Result<JoinedChunks, EdgeError> {
    let (chunks, relation) = rows(snapshot, kind).map_err(Fault::from)?;
    let mut signals = Vec::with_capacity(sources.len());
    for source in sources {
        signals.push(gathered(snapshot, &chunks, source, control)?);
    }
    let signals: Vec<&dyn Signal> = signals.iter().map(AsRef::as_ref).collect();
    let ranks = key_ranks(snapshot, &chunks, |_| false)?;
    let composite = build(&signals, &ranks, relation, rules, control).map_err(Fault::from)?;
    Ok(JoinedChunks { chunks, composite })
}

fn rows(snapshot: &Snapshot, kind: Option<PairKind>) -> Result<(Vec<ChunkId>, Relation), Damage> {
    let (mut others, mut tables) = (Vec::new(), Vec::new());
    for id in snapshot.chunk_ids() {
        let is_table = kind.is_some() && snapshot.chunk(id)?.is_table();
        if is_table { tables.push(id) } else { others.push(id) }
    }
    others.sort_unstable();
    tables.sort_unstable();
    Ok(match kind {
        None | Some(PairKind::DocumentDocument) => (others, Relation::Within),
        Some(PairKind::TableTable) => (tables, Relation::Within),
        Some(PairKind::TableDocument) => {
            let second = u32::try_from(others.len()).unwrap_or(u32::MAX);
            others.append(&mut tables);
            (others, Relation::Across { second })
        }
    })
}

fn gathered(
    snapshot: &Snapshot,
    chunks: &[ChunkId],
    source: &Source,
    control: &dyn Control,
) -> Result<Box<dyn Signal>, EdgeError> {
    Ok(match source {
        Source::Vectors(space) => Box::new(vectors(snapshot, chunks, space)?),
        Source::Entities(weighing) => Box::new(entities(snapshot, chunks, *weighing)?),
        Source::Words(weighing) => Box::new(overlap(snapshot, chunks, *weighing, control, |chunk| Ok(chunk.text()?))?),
        Source::Titles(weighing) => {
            Box::new(overlap(snapshot, chunks, *weighing, control, |chunk| Ok(chunk.document()?.title()?.to_owned()))?)
        }
        Source::Columns => {
            let mut columns = ColumnsBuilder::default();
            for_each(snapshot, chunks, control, |chunk| {
                let is_table = chunk.is_table();
                columns.push(if is_table { columns_of(&chunk.text()?) } else { Vec::new() });
                Ok(())
            })?;
            Box::new(columns.finish())
        }
    })
}

fn vectors(snapshot: &Snapshot, chunks: &[ChunkId], space: &str) -> Result<Dense<'static>, EdgeError> {
    let spaces = snapshot.spaces().map_err(Fault::from)?;
    let Some(known) = spaces.iter().find(|known| known.name == space) else {
        let known = spaces.iter().map(|space| space.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(QueryError::UnknownSpace { space: space.to_owned(), known }.into());
    };
    let mut order: Vec<(ChunkId, usize)> = chunks.iter().copied().zip(0..).collect();
    order.sort_unstable();
    let mut matrix = vec![0.0; chunks.len() * known.dimensions];
    let mut put = |chunk: ChunkId, row: &[u8]| {
        let at = order.binary_search_by_key(&chunk, |known| known.0).ok().map(|at| order[at].1 * known.dimensions)?;
        decode(row, matrix.get_mut(at..at + known.dimensions)?);
        Some(())
    };
    snapshot.for_each_vector(Some(space), |_, chunk, row| _ = put(chunk, row)).map_err(Fault::from)?;
    Ok(Dense::new(matrix, known.dimensions))
}

/// Entities are told apart by their keys, which no history changes, as slots do not.
fn entities(snapshot: &Snapshot, chunks: &[ChunkId], weighing: Weighing) -> Result<Overlap, Fault> {
    let mut sets = SetsBuilder::default();
    for chunk in chunks {
        let mut keys = Vec::new();
        if let Some(links) = snapshot.links() {
            for slot in links.mentions(*chunk)?.iter() {
                keys.push(links.entity(EntitySlot(slot))?.key);
            }
        }
        sets.push(keys);
    }
    Ok(Overlap::new(sets.finish(), weighing))
}

fn overlap(
    snapshot: &Snapshot,
    chunks: &[ChunkId],
    weighing: Weighing,
    control: &dyn Control,
    text_of: impl Fn(&ChunkView<'_>) -> Result<String, Fault>,
) -> Result<Overlap, Fault> {
    let mut sets = SetsBuilder::default();
    for_each(snapshot, chunks, control, |chunk| {
        sets.push_words(&text_of(chunk)?);
        Ok(())
    })?;
    Ok(Overlap::new(sets.finish(), weighing))
}

fn for_each(
    snapshot: &Snapshot,
    chunks: &[ChunkId],
    control: &dyn Control,
    mut visit: impl FnMut(&ChunkView<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for chunk in chunks {
        if control.cancelled() {
            return Err(Cancelled.into());
        }
        visit(&snapshot.chunk(*chunk)?)?;
    }
    Ok(())
}

impl From<Fault> for EdgeError {
    fn from(fault: Fault) -> Self {
        CommitError::from(fault).into()
    }
}
