//! A store's life, step by step, and the documents that a map holds after each step.

use crate::numbers::Numbers;
use crate::pipeline::{PIPELINE, document, unit_vector};
use hedgerow::{
    Batch, CommitError, CommunityRules, EdgeError, EdgeRules, Extractive, Quiet, StagedDocument, StagedEdge,
    StagedEdgeList, StagedEnd, StagedEntity, StagedExtraction, Store, Target, triple,
};
use std::collections::{BTreeMap, BTreeSet};

/// What is done to the document with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is put, with one of a few texts.
    Put(u8, u8),
    /// It is deleted.
    Delete(u8),
    /// A relation is said to stand in it.
    Relate(u8, u8),
    /// Its chunk gets another vector.
    Vector(u8, u8),
    /// An extractor finds something else in its chunk.
    Extract(u8, u8),
}

/// A step of a store's life: true as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Changes that are committed together.
    Commit(Vec<Change>),
    /// Projections are brought in step.
    Refresh,
    /// Similarity edges are built.
    Edges,
    /// Communities are found.
    Communities,
    /// Segments are rewritten.
    Compact,
}

/// A document as the map holds it: its text, and what was said about it since it was put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Number of its text.
    pub text: u8,
    /// Numbers of the relations that were added.
    pub relations: BTreeSet<u8>,
    /// Number of the vector that was set.
    pub vector: Option<u8>,
    /// Number of the extraction that was set.
    pub extraction: Option<u8>,
}

/// Documents by number.
pub type Model = BTreeMap<u8, Held>;

/// How similarity edges are built in lives.
pub const RULES: EdgeRules = EdgeRules::new(30_000, 3);

/// How communities are found that every life has once it has edges.
pub const COMMUNITIES: CommunityRules =
    CommunityRules { members_max: 3, resolution: 1000, levels_max: 3, co_mentions: true };

/// Key of a document.
#[must_use]
pub fn key(number: u8) -> String {
    format!("d{number}")
}

/// Text of a document.
#[must_use]
pub fn text(key: u8, number: u8) -> String {
    let texts = [
        "Alice owns Bridge.",
        "The old Bridge of Dover.",
        "Carol met ALICE in Ely.",
        "Ely owns Dover. alice owns Ely",
        "BRIDGE owns Carol.",
    ];
    format!("{} It is number {key}.", texts[usize::from(number) % texts.len()])
}

/// Key of the document that states a graph beside a document.
#[must_use]
pub fn graph_key(number: u8) -> String {
    format!("g{number}")
}

/// Ends and weights of the edges of the graph that is stated beside a document with this text; none for most texts.
#[must_use]
pub fn graph(number: u8, text: u8) -> &'static [(&'static str, &'static str, f32)] {
    match (text % 5, number % 2) {
        (3, 0) => &[("Alice", "Mill", 1.0), ("Mill", "Mill", 1.0), ("QUAY", "Alice", 1.0)],
        (3, _) => &[("Alice", "mill", 0.5), ("Dover", "Alice", 2.0), ("Alice", "mill", 0.25)],
        _ => &[],
    }
}

/// Keys and texts of all documents, of those that state graphs too.
#[must_use]
pub fn documents(model: &Model) -> BTreeMap<String, String> {
    let texts = model.iter().map(|(number, held)| (key(*number), text(*number, held.text)));
    let graphs = model.iter().filter(|(number, held)| !graph(**number, held.text).is_empty());
    texts.chain(graphs.map(|(number, _)| (graph_key(*number), String::new()))).collect()
}

/// Puts the graph beside a document, or takes it away.
fn put_graph(batch: &mut Batch, number: u8, text: u8) {
    let edges = graph(number, text);
    let names = edges.iter().flat_map(|(subject, object, _)| [*subject, *object]);
    let nodes: Vec<StagedEnd> = names.filter_map(|name| StagedEnd::new(name, "").ok()).collect();
    let staged = edges.iter().zip((0..).step_by(2)).map(|((_, _, weight), subject)| StagedEdge {
        subject,
        object: subject + 1,
        weight: *weight,
    });
    let edges: BTreeMap<String, Vec<StagedEdge>> = BTreeMap::from([("leads to".to_owned(), staged.collect())]);
    match StagedEdgeList::of_graph(nodes, edges) {
        Ok(edge_lists) if !edge_lists.is_empty() => {
            batch.put(StagedDocument { edge_lists, ..StagedDocument::textless(graph_key(number), [text; 16]) });
        }
        _ => batch.delete(&graph_key(number)),
    }
}

/// Ends and weight of an added relation.
#[must_use]
pub fn relation(number: u8) -> (&'static str, &'static str, f32) {
    [("Alice", "Carol", 1.0), ("ALICE", "Dover", 0.1), ("Ely", "Alice", 0.7), ("Zoe", "bridge", 3.0)]
        [usize::from(number % 4)]
}

/// Components of a vector that is set.
#[must_use]
pub fn components(number: u8) -> [f32; 2] {
    [[0.6, 0.8], [0.8, 0.6], [-1.0, 0.2], [0.0, -1.0]][usize::from(number % 4)]
}

/// What an extractor finds: a name, its type, what it is, and whom Alice sees there, if anyone.
#[must_use]
pub fn extraction(number: u8) -> (&'static str, &'static str, &'static str, Option<&'static str>) {
    [
        ("Carol", "person", "someone in Ely", Some("Carol")),
        ("Quay", "", "", None),
        ("BRIDGE", "structure", "an old one", Some("Mill")),
        ("", "", "", None),
    ][usize::from(number % 4)]
}

fn extract(batch: &mut Batch, number: u8, found: u8) {
    let (name, kind, description, seen) = extraction(found);
    let (extractor, model) = ("reader".to_owned(), format!("reader-{}", found % 3));
    let entity = StagedEntity::new(name, kind).ok();
    let entities =
        entity.map(|entity| StagedEntity { description: description.to_owned(), range: 0..found.into(), ..entity });
    let relations = seen.and_then(|seen| triple(("Alice", ""), "sees", (seen, "thing"), 0.5).ok());
    let (entities, relations) = (entities.into_iter().collect(), relations.into_iter().collect());
    let extraction = StagedExtraction { extractor, model, entities, relations };
    batch.set_extraction(Target { document: key(number), chunk: Some(0) }, extraction);
}

fn relate(batch: &mut Batch, number: u8, added: u8) {
    let (subject, object, weight) = relation(added);
    if let Ok(relation) = triple((subject, ""), "knows", (object, "person"), weight) {
        batch.relate(Target { document: key(number), chunk: added.is_multiple_of(2).then_some(0) }, relation);
    }
}

/// A life that has everything in it, its order drawn by the seed.
#[must_use]
pub fn steps(seed: u64) -> Vec<Step> {
    let mut numbers = Numbers(seed);
    let mut draw = |end: usize| u8::try_from(numbers.below(end)).unwrap_or(0);
    let mut change = |kind: u8| match kind {
        0..=5 => Change::Put(draw(5), draw(5)),
        6 | 7 => Change::Delete(draw(5)),
        8 => Change::Relate(draw(5), draw(4)),
        10 => Change::Extract(draw(5), draw(4)),
        _ => Change::Vector(draw(5), draw(4)),
    };
    let mut commit = |kinds: &[u8]| Step::Commit(kinds.iter().map(|kind| change(*kind)).collect());
    let mut steps = vec![
        commit(&[0, 0, 0]),
        Step::Refresh,
        commit(&[0, 8, 10]),
        commit(&[9, 0, 10]),
        Step::Edges,
        Step::Communities,
        commit(&[6, 9]),
        commit(&[0, 8, 9, 10]),
        Step::Refresh,
        commit(&[0, 6]),
        Step::Compact,
        commit(&[8, 9, 10]),
        Step::Refresh,
    ];
    if seed % 3 == 1 {
        steps.swap(1, 4);
        steps.swap(8, 10);
    }
    if seed % 3 == 2 {
        steps.rotate_left(2);
    }
    steps
}

/// Does the changes to the model.
#[must_use]
pub fn changed(model: &Model, changes: &[Change]) -> Model {
    let mut after = model.clone();
    for change in changes {
        match *change {
            Change::Put(number, text) => {
                let known = model.get(&number).filter(|held| held.text == text).cloned();
                after.insert(number, known.unwrap_or(Held { text, ..Held::default() }));
            }
            Change::Delete(number) => drop(after.remove(&number)),
            _ => {}
        }
    }
    for change in changes {
        match *change {
            Change::Relate(number, relation) => {
                after.get_mut(&number).map(|held| held.relations.insert(relation));
            }
            Change::Vector(number, vector) => {
                after.get_mut(&number).map(|held| held.vector.replace(vector));
            }
            Change::Extract(number, found) => {
                after.get_mut(&number).map(|held| held.extraction.replace(found));
            }
            _ => {}
        }
    }
    after
}

/// A batch with the changes; those about documents that are not there afterwards are left out.
fn batch(store: &Store, after: &Model, changes: &[Change]) -> Batch {
    let mut batch = Batch::default();
    for change in changes {
        match *change {
            Change::Put(number, text_number) => {
                let given = vec![document(&key(number), &text(number, text_number))];
                PIPELINE.stage(&store.snapshot(), given, &mut batch, &Quiet).ok();
                put_graph(&mut batch, number, text_number);
            }
            Change::Delete(number) => {
                batch.delete(&key(number));
                batch.delete(&graph_key(number));
            }
            _ => {}
        }
    }
    for change in changes {
        match *change {
            Change::Relate(number, added) if after.contains_key(&number) => relate(&mut batch, number, added),
            Change::Extract(number, found) if after.contains_key(&number) => extract(&mut batch, number, found),
            Change::Vector(number, vector) if after.contains_key(&number) => {
                batch.set_vector(Target { document: key(number), chunk: None }, unit_vector(&components(vector)));
            }
            _ => {}
        }
    }
    batch
}

/// Does a step to a store that holds what `model` says; gives what the model holds afterwards.
///
/// # Errors
/// [`CommitError`].
pub fn live(store: &Store, model: &Model, step: &Step) -> Result<Model, CommitError> {
    match step {
        Step::Commit(changes) => {
            let after = changed(model, changes);
            store.commit(batch(store, &after, changes))?;
            return Ok(after);
        }
        Step::Refresh => store.refresh(&Quiet)?,
        Step::Compact => drop(store.compact(&Quiet)?),
        // Where there are no vectors there are no edges, and that is no error here.
        Step::Edges => {
            if let Err(EdgeError::Commit(error)) = store.build_edges("letters", &RULES, &Quiet) {
                return Err(error);
            }
        }
        Step::Communities => drop(store.build_communities(&COMMUNITIES, &Extractive, None, &Quiet)?),
    }
    Ok(model.clone())
}

/// Makes a store hold what the model says, in one commit.
///
/// # Errors
/// [`CommitError`].
pub fn build(store: &Store, model: &Model) -> Result<(), CommitError> {
    let mut all: Vec<Change> = model.iter().map(|(number, held)| Change::Put(*number, held.text)).collect();
    for (number, held) in model {
        all.extend(held.relations.iter().map(|relation| Change::Relate(*number, *relation)));
        all.extend(held.vector.map(|vector| Change::Vector(*number, vector)));
        all.extend(held.extraction.map(|found| Change::Extract(*number, found)));
    }
    live(store, &Model::new(), &Step::Commit(all)).map(|_| ())
}
