//! Definition links, and the mentions that count: the recipe's index, followed from one generation to the next.

mod candidates;
mod follow;
mod full;
mod places;
mod relations;
mod words;

use crate::error::Damage;
use crate::index::control::Control;
use crate::index::names::Cases;
use crate::project::links::candidates::{Candidate, Candidates};
use crate::project::links::relations::Relations;
use crate::project::{Fault, chunks_end};
use crate::projection::{EntityList, LinksData, Related, RelationList, WordList};
use crate::snapshot::Snapshot;
use hedgerow_format::projection::link_flags;
use hedgerow_format::{ChunkId, Key, name};
use std::collections::BTreeSet;

/// A phrase at the start of more chunks than this, or a heading, term or symbol of more, defines none of them.
const LEADS_MAX: usize = 3;

/// Makes the links projection of a snapshot: from that of an earlier one, or from all text. Both give the same.
pub(super) fn build(
    snapshot: &Snapshot,
    earlier: Option<&Snapshot>,
    control: &dyn Control,
) -> Result<LinksData, Fault> {
    let followed = earlier.map(|earlier| follow::follow(earlier, snapshot, control));
    match followed {
        Some(Ok(Some(links))) => Ok(links),
        Some(Err(Fault::Cancelled)) => Err(Fault::Cancelled),
        // What is damaged in the earlier generation need not be there any more.
        Some(Ok(None) | Err(Fault::Damage(_))) | None => full::build(snapshot, control),
    }
}

/// What is made of the text.
#[derive(Default)]
struct Found {
    /// Chunk and candidate of every mention that counts, sorted.
    mentions: Vec<(u32, u32)>,
    /// Key of every phrase that a chunk begins with, and the chunk, sorted.
    leads: Vec<(Key, u32)>,
    words: WordList,
}

/// Keeps the candidates that live and numbers them anew, in the order of keys.
fn finish(
    snapshot: &Snapshot,
    candidates: Candidates<'_>,
    found: Found,
    case_flags: impl Fn(usize, &Candidate<'_>) -> u32,
) -> Result<LinksData, Fault> {
    let relations = Relations::of(snapshot, &candidates)?;
    let list = candidates.list;
    let mut definitions = candidates.definitions;
    add_leads(&list, &found.leads, &mut definitions);
    definitions.sort_unstable();
    definitions.dedup();
    let mut alive: Vec<bool> = list.iter().map(|candidate| candidate.gazetteer || candidate.related).collect();
    for (_, candidate) in &found.mentions {
        alive[ChunkId(*candidate).index()] = true;
    }
    let also_kinds = names_of_kinds(&list, &relations.predicates);
    let full = |source| Damage { file: "the links projection".into(), source };
    let mut numbers = vec![u32::MAX; alive.len()];
    let mut entities = EntityList::with_capacity(list.len());
    for (position, candidate) in list.iter().enumerate().filter(|(position, _)| alive[*position]) {
        numbers[position] = u32::try_from(entities.len()).unwrap_or(u32::MAX);
        let flags = if candidate.gazetteer { link_flags::GAZETTEER } else { 0 } | case_flags(position, candidate);
        let is_kind = also_kinds.contains(&position);
        entities.push(candidate.key, (candidate.name, candidate.kind), flags, is_kind).map_err(full)?;
    }
    // What is mentioned or searched for lives; what is only a lead need not.
    let number = |candidate: u32| Some(numbers[ChunkId(candidate).index()]).filter(|number| *number != u32::MAX);
    let mut mentions = found.mentions;
    for (_, entity) in &mut mentions {
        *entity = numbers[ChunkId(*entity).index()];
    }
    let definitions = definitions.iter().filter_map(|(entity, chunk)| Some((number(*entity)?, *chunk))).collect();
    let labels = relations.predicates.iter().map(|label| entities.label(label));
    let predicates = labels.collect::<Result<_, _>>().map_err(full)?;
    let renumbered = relations
        .edges
        .into_iter()
        .filter_map(|edge| Some(Related { subject: number(edge.subject)?, object: number(edge.object)?, ..edge }));
    let relations = RelationList { predicates, edges: renumbered.collect() };
    let (words, leads) = (found.words, found.leads);
    Ok(LinksData { entities, mentions, definitions, words, leads, relations, chunks_end: chunks_end(snapshot) })
}

/// Positions of the candidates whose names are types of candidates or labels of relations as well.
fn names_of_kinds(list: &[Candidate<'_>], labels: &[&str]) -> BTreeSet<usize> {
    let mut kinds: Vec<&str> = labels.to_vec();
    for candidate in list {
        // Most have the type of the one before them.
        if kinds.last() != Some(&candidate.kind) {
            kinds.push(candidate.kind);
        }
    }
    let kinds: BTreeSet<&str> = kinds.into_iter().filter(|kind| !kind.is_empty()).collect();
    let position = |kind: &&str| {
        let key = Key::of_entity(&name::name_key_text(kind));
        let found = list.binary_search_by_key(&key, |candidate| candidate.key).ok();
        found.filter(|position| list[*position].name == *kind)
    };
    kinds.iter().filter_map(position).collect()
}

/// Adds candidate and chunk of every phrase that few chunks begin with. Both lists ascend by key.
fn add_leads(list: &[Candidate<'_>], leads: &[(Key, u32)], definitions: &mut Vec<(u32, u32)>) {
    let mut candidates = (0..).zip(list).peekable();
    for group in leads.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() <= LEADS_MAX) {
        let Some(&(key, _)) = group.first() else { continue };
        while candidates.next_if(|(_, candidate)| candidate.key < key).is_some() {}
        let found = candidates.peek().filter(|(_, candidate)| candidate.key == key);
        definitions.extend(found.iter().flat_map(|(number, _)| group.iter().map(|(_, chunk)| (*number, *chunk))));
    }
}

/// How the corpus writes a name of one word, for questions, in which there is no corpus to count.
fn case_flags(name: &str, cases: &impl Cases) -> u32 {
    let key_text = name::name_key_text(name);
    if key_text.contains(' ') {
        return 0;
    }
    let case = cases.case(&key_text);
    let common = if case.lower > case.capital { link_flags::COMMON } else { 0 };
    let mostly = if case.lower >= case.capital.saturating_mul(4) && common != 0 { link_flags::MOSTLY_LOWER } else { 0 };
    common | mostly
}
