//! Everything that is asked of a store, and what a map and plain arithmetic say that it must answer.

use crate::disk::Disk;
use crate::life::{Model, build, components, documents, extraction, graph, key, relation, text};
use crate::pipeline::{Letters, MODELS, unit_vector};
use hedgerow::{
    EdgeKind, Embed, Env, ExpandOptions, Extractive, QueryError, Question, Quiet, Recall, Snapshot, Store, Strategy,
    VectorSearch,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Write as _};
use std::sync::Arc;

const QUESTIONS: [&str; 2] = ["Who owns the old Bridge?", "Alice and Dover in Ely"];
const KEYS: [&str; 3] = ["Alice", "Bridge", "d0#0"];
/// Words whose stems are themselves.
const WORDS: [&str; 4] = ["carol", "dover", "old", "met"];

/// What a snapshot says, as text: documents, entities, relations, terms, vectors, k-hop, ask, statistics. Numbers of
/// generations and files are left out, since content does not depend on them.
///
/// # Errors
/// [`QueryError`].
pub fn answers(snapshot: &Snapshot) -> Result<String, QueryError> {
    let mut said = String::new();
    for (key, text) in texts(snapshot)? {
        say(&mut said, &(key, text));
    }
    say(&mut said, &snapshot.list_entities(usize::MAX)?);
    say(&mut said, &snapshot.list_relations(usize::MAX)?);
    for question in QUESTIONS {
        say(&mut said, &snapshot.search_terms(question, None, 10)?);
        let question = Question { strategy: Strategy::Graph, ..Question::new(question) };
        let mut context = snapshot.ask(&question, MODELS)?;
        context.trace.generation = 0;
        say(&mut said, &context);
    }
    say(&mut said, &snapshot.list_communities(None, usize::MAX)?);
    say(&mut said, &nearest(snapshot)?);
    for key in KEYS {
        match snapshot.find(key) {
            Err(QueryError::NotFound { .. }) => say(&mut said, &"not found"),
            Err(error) => return Err(error),
            Ok(node) => {
                say(&mut said, &snapshot.describe(node, 20)?);
                say(&mut said, &snapshot.expand(&[node], &ExpandOptions { hops: 2, ..ExpandOptions::default() })?);
            }
        }
    }
    // Edges are there even where none survived: what is behind later depends on it.
    say(&mut said, &snapshot.edge_rules());
    say(&mut said, &snapshot.incomplete());
    say(&mut said, &snapshot.statistics()?);
    say(&mut said, &snapshot.fingerprint()?);
    Ok(said)
}

fn say(said: &mut String, what: &dyn Debug) {
    // Writing into a string cannot fail.
    writeln!(said, "{what:?}").ok();
}

fn texts(snapshot: &Snapshot) -> Result<BTreeMap<String, String>, QueryError> {
    let mut texts = BTreeMap::new();
    for document in snapshot.document_ids() {
        let document = snapshot.document(document)?;
        texts.insert(document.key()?.to_owned(), document.text()?);
    }
    Ok(texts)
}

/// The chunks nearest to a fixed vector, with their cosines.
fn nearest(snapshot: &Snapshot) -> Result<Vec<(String, f32)>, QueryError> {
    nearest_to(snapshot, 1, 100)
}

/// So many chunks nearest to one of some fixed vectors, with their cosines.
fn nearest_to(snapshot: &Snapshot, number: u8, count: usize) -> Result<Vec<(String, f32)>, QueryError> {
    let wanted = unit_vector(&components(number)).components;
    let search = VectorSearch { recall: Recall::Exact, ..VectorSearch::new(count) };
    match snapshot.search_vectors("letters", &wanted, &search) {
        Err(QueryError::UnknownSpace { .. }) => Ok(Vec::new()),
        found => Ok(found?.into_iter().map(|found| (found.key, found.score)).collect()),
    }
}

/// Whether a snapshot says what the model says, by plain means: documents as a map, terms by looking for words, cosines
/// by arithmetic, k-hop by walking a list of pairs; and, where projections are in step, everything as a store says that
/// is made afresh of what the model holds.
///
/// # Errors
/// What is different.
pub fn compare(snapshot: &Snapshot, model: &Model, edges: bool) -> Result<(), String> {
    let failed = |error: QueryError| error.to_string();
    let expected: BTreeMap<String, String> = model.iter().map(|(n, held)| (key(*n), text(*n, held.text))).collect();
    equal("documents", &texts(snapshot).map_err(failed)?, &documents(model))?;
    for word in WORDS {
        let found = snapshot.search_terms(word, None, 100).map_err(failed)?;
        let found: BTreeSet<String> = found.into_iter().map(|found| found.key).collect();
        let holds = |text: &&String| {
            text.split(|letter: char| !letter.is_alphanumeric()).any(|part| part.eq_ignore_ascii_case(word))
        };
        let texts = expected.iter().filter(|(_, text)| holds(text));
        equal("terms", &found, &texts.map(|(key, _)| format!("{key}#0")).collect())?;
    }
    compare_vectors(snapshot, model)?;
    compare_walk(snapshot, model)?;
    if snapshot.incomplete().is_empty() {
        let fresh = Store::open_or_create_in(Env::seeded(Arc::new(Disk::default()), 1)).map_err(|e| e.to_string())?;
        build(&fresh, model).map_err(|error| error.to_string())?;
        if edges && !fresh.snapshot().spaces().map_err(|e| e.to_string())?.is_empty() {
            fresh.build_edges("letters", &crate::life::RULES, &Quiet).map_err(|error| error.to_string())?;
        }
        if let Some(rules) = snapshot.community_rules() {
            let built = fresh.build_communities(&rules, &Extractive, None, &Quiet);
            built.map_err(|error| error.to_string())?;
        }
        fresh.refresh(&Quiet).map_err(|error| error.to_string())?;
        let fresh = answers(&fresh.snapshot()).map_err(failed)?;
        equal("a store made afresh", &answers(snapshot).map_err(failed)?, &fresh)?;
    }
    Ok(())
}

fn equal<T: Debug + PartialEq>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: expected {expected:?}, found {found:?}")) }
}

fn compare_vectors(snapshot: &Snapshot, model: &Model) -> Result<(), String> {
    let wanted = unit_vector(&components(1)).components;
    let mut expected = BTreeMap::new();
    for (number, held) in model {
        let vector = if let Some(set) = held.vector {
            unit_vector(&components(set)).components
        } else {
            {
                let given = format!("Page {}\n{}", key(*number), text(*number, held.text));
                let made = Letters.embed(&[&given]).map_err(|error| error.to_string())?;
                unit_vector(&made.into_iter().flatten().next().unwrap_or_default()).components
            }
        };
        let cosine: f64 = vector.iter().zip(&wanted).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        expected.insert(format!("{}#0", key(*number)), cosine);
    }
    let found = nearest(snapshot).map_err(|error| error.to_string())?;
    let same = found.len() == expected.len()
        && found.iter().all(|(key, cosine)| {
            expected.get(key).is_some_and(|expected| (expected - f64::from(*cosine)).abs() < 1e-6)
        })
        && found.is_sorted_by(|a, b| a.1 > b.1 || (a.1.to_bits() == b.1.to_bits() && a.0 < b.0));
    if !same {
        return Err(format!("vectors: expected {expected:?}, found {found:?}"));
    }
    // Few are found among others, which may not take their places.
    for (number, count) in [(1, 1), (1, 3), (2, 1), (2, 3), (3, 1), (3, 3)] {
        let all = nearest_to(snapshot, number, 100).map_err(|error| error.to_string())?;
        let few = nearest_to(snapshot, number, count).map_err(|error| error.to_string())?;
        equal("few vectors", &few, &all.into_iter().take(count).collect())?;
    }
    Ok(())
}

/// Two hops along relations from one entity.
fn compare_walk(snapshot: &Snapshot, model: &Model) -> Result<(), String> {
    let mut pairs: BTreeSet<(String, String)> = BTreeSet::new();
    let mut pair = |a: &str, b: &str| pairs.insert((a.to_lowercase(), b.to_lowercase()));
    for (number, held) in model {
        let text = text(*number, held.text);
        let words: Vec<&str> = text.split(|letter: char| !letter.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let capital = |word: &str| word.len() > 1 && word.starts_with(char::is_uppercase);
        for three in words.windows(3).filter(|three| three[1] == "owns" && capital(three[0]) && capital(three[2])) {
            pair(three[0], three[2]);
        }
        for (subject, object, _) in graph(*number, held.text) {
            pair(subject, object);
        }
        for added in &held.relations {
            pair(relation(*added).0, relation(*added).1);
        }
        if let Some(seen) = held.extraction.and_then(|found| extraction(found).3) {
            pair("Alice", seen);
        }
    }
    let mut reached = BTreeSet::from(["alice".to_owned()]);
    for _ in 0..2 {
        let near = |(a, b): &(String, String)| reached.contains(a) || reached.contains(b);
        let more: Vec<String> =
            pairs.iter().filter(|pair| near(pair)).flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
        reached.extend(more);
    }
    let found = match snapshot.find("entity:Alice") {
        Err(QueryError::NotFound { .. }) => {
            let known = pairs.iter().any(|(a, b)| a == "alice" || b == "alice");
            return if known { Err("k-hop: Alice is not found".into()) } else { Ok(()) };
        }
        found => found.map_err(|error| error.to_string())?,
    };
    let options = ExpandOptions { hops: 2, edges: vec![EdgeKind::Relations], ..ExpandOptions::default() };
    let found = snapshot.expand(&[found], &options).map_err(|error| error.to_string())?;
    let name = |key: &String| key.trim_start_matches("entity:").to_lowercase();
    equal("k-hop", &found.nodes.iter().map(|node| name(&node.key)).collect(), &reached)
}
