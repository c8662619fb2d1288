//! A reader: opens, asks everything, holds on to snapshots, and opens again; nothing may be mixed, missing or changed.

use crate::content;
use crate::progress::Progress;
use hedgerow::{
    EdgeKind, Embed, Env, ExpandOptions, Listing, Question, Quiet, RelationLine, Snapshot, Strategy, VectorSearch,
    verify,
};
use hedgerow_durability::{Letters, MODELS};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// Snapshots that are held at once.
const HELD: usize = 6;
/// Every so many openings all bytes are checked.
const VERIFY_EVERY: u64 = 8;

/// A snapshot with what it said when it was opened.
struct Held {
    snapshot: Snapshot,
    said: String,
    until: Instant,
}

/// Reads until the end; what it did is its last line, as JSON.
pub fn read(path: &Path, end: Instant, number: u64) -> Result<(), String> {
    let (mut opened, mut verified, mut asked_again, mut generations) = (0_u64, 0_u64, 0_u64, BTreeSet::new());
    let (mut newest, mut newest_stamp, mut fingerprint) = (0, 0, None);
    let mut held: Vec<Held> = Vec::new();
    while Instant::now() < end {
        let acknowledged = Progress::read(path)?.get("stamp");
        let snapshot = Snapshot::open(path).map_err(|error| error.to_string())?;
        opened += 1;
        let generation = snapshot.generation();
        let at = |error: String| format!("generation {generation}: {error}");
        let stamp = check(&snapshot).map_err(at)?;
        if generation < newest || stamp < newest_stamp.max(acknowledged) {
            return Err(format!(
                "generation {generation} of stamp {stamp} came after generation {newest} of stamp {newest_stamp}, and \
                stamp {acknowledged} was acknowledged"
            ));
        }
        if generation == newest && stamp != newest_stamp {
            return Err(at(format!("it was of stamp {newest_stamp}, and is of {stamp}")));
        }
        // Whatever was merged or refreshed meanwhile, the content of a stamp is the same.
        let found = Some(snapshot.fingerprint().map_err(|error| error.to_string())?);
        if (stamp == newest_stamp) != (found == fingerprint) {
            return Err(at(format!("stamp {newest_stamp} had fingerprint {fingerprint:?}, and {stamp} has {found:?}")));
        }
        (newest, newest_stamp, fingerprint) = (generation, stamp, found);
        generations.insert(generation);
        if (opened + number).is_multiple_of(VERIFY_EVERY) {
            let found = verify(&Env::folder(path).map_err(|error| error.to_string())?, &Quiet);
            let found = found.map_err(|error| error.to_string())?;
            if !found.problems.is_empty() || found.generation < newest {
                return Err(at(format!("verify found {found:?}")));
            }
            verified += 1;
        }
        asked_again += ask_again(&mut held)?;
        if held.len() < HELD {
            let said = said(&snapshot, stamp)?;
            let until = Instant::now() + Duration::from_millis(50 + (opened * 7 + number) % 40 * 50);
            held.push(Held { snapshot, said, until });
        }
    }
    let generations = generations.len();
    println!("{}", json!({"opened": opened, "generations": generations, "verified": verified, "again": asked_again}));
    Ok(())
}

/// What is held says what it said; what was held for long enough is let go. Returns how many were asked.
fn ask_again(held: &mut Vec<Held>) -> Result<u64, String> {
    for Held { snapshot, said: before, .. } in held.iter() {
        let now = said(snapshot, content::stamp_of(snapshot)?)?;
        if now != *before {
            return Err(format!("generation {} said {before} and says {now}", snapshot.generation()));
        }
    }
    let asked = held.len() as u64;
    held.retain(|held| Instant::now() < held.until);
    Ok(asked)
}

/// Holds every answer of a snapshot against what its stamp demands. Returns the stamp.
fn check(snapshot: &Snapshot) -> Result<u64, String> {
    let stamp = content::stamp_of(snapshot)?;
    if stamp == 0 {
        return Err("there is no seal".into());
    }
    if let Some(difference) = content::difference(stamp, &content::texts(snapshot)?) {
        return Err(format!("stamp {stamp}: {difference}"));
    }
    let lacks = snapshot.incomplete();
    let expected = |lack: &String| lack.contains(" is behind: ") || lack.starts_with("there is no links projection");
    if !snapshot.faults().messages.is_empty() || !lacks.iter().all(expected) {
        return Err(format!("it lacks {lacks:?}, and {:?}", snapshot.faults()));
    }
    check_search(snapshot, stamp)?;
    check_graph(snapshot, stamp)?;
    Ok(stamp)
}

fn check_search(snapshot: &Snapshot, stamp: u64) -> Result<(), String> {
    let terms =
        |stamp: u64| snapshot.search_terms(&content::word(stamp), None, 1000).map_err(|error| error.to_string());
    let found = [terms(stamp - 1)?.len(), terms(stamp)?.len(), terms(stamp + 1)?.len()];
    let stamped = usize::try_from(content::pages(stamp) + 1).map_err(|error| error.to_string())?;
    if found != [0, stamped, 0] {
        return Err(format!("{stamped} documents say stamp {stamp}; those of it and its neighbours are {found:?}"));
    }
    let content = content::content(stamp);
    let nearest = snapshot.search_vectors("letters", &vector(&content, "page 0")?, &VectorSearch::new(1000));
    let nearest = nearest.map_err(|error| error.to_string())?;
    let keys: BTreeSet<&str> = nearest.iter().filter_map(|found| found.key.strip_suffix("#0")).collect();
    let best = nearest.first().is_some_and(|found| found.score > 0.999_9);
    if !best || nearest.len() != content.len() || !keys.into_iter().eq(content.keys()) {
        return Err(format!("the vectors of stamp {stamp} are {nearest:?}"));
    }
    for strategy in Strategy::ALL {
        let question = Question { strategy, ..Question::new(question(stamp)) };
        let context = snapshot.ask(&question, MODELS).map_err(|error| error.to_string())?;
        let whole = |passage: &hedgerow::Passage| content.get(&passage.document) == Some(&passage.text);
        if context.passages.is_empty() || !context.passages.iter().all(whole) {
            return Err(format!("at stamp {stamp} the passages are {:?}", context.passages));
        }
    }
    Ok(())
}

fn check_graph(snapshot: &Snapshot, stamp: u64) -> Result<(), String> {
    let listed = snapshot.list_relations(usize::MAX).map_err(|error| error.to_string())?;
    let Listing::Relations(lines) = listed else { return Err("relations are listed as something else".into()) };
    let line = |line: &RelationLine| {
        format!("{} {} {} {} {:?}", line.subject, line.predicate, line.object, line.weight, line.evidence)
    };
    let mut relations: Vec<String> = lines.iter().map(line).collect();
    relations.sort();
    if relations != content::relations(stamp) {
        return Err(format!("the relations of stamp {stamp} are {relations:?}"));
    }
    let reached = expand(snapshot, vec![EdgeKind::Relations])?;
    if reached != ["entity:Keeper".to_owned(), format!("entity:Gate{stamp}")] {
        return Err(format!("at stamp {stamp} relations lead from Keeper to {reached:?}"));
    }
    let content = content::content(stamp);
    for key in expand(snapshot, EdgeKind::ALL.to_vec())? {
        let document = key.strip_prefix("chunk:").and_then(|key| key.strip_suffix("#0"));
        if document.is_some_and(|document| !content.contains_key(document)) {
            return Err(format!("at stamp {stamp} the graph leads from Keeper to {key}"));
        }
    }
    Ok(())
}

/// Keys of what can be reached from Keeper in two hops.
fn expand(snapshot: &Snapshot, edges: Vec<EdgeKind>) -> Result<Vec<String>, String> {
    let seed = snapshot.find("entity:Keeper").map_err(|error| error.to_string())?;
    let options = ExpandOptions { edges, hops: 2, ..ExpandOptions::default() };
    let expansion = snapshot.expand(&[seed], &options).map_err(|error| error.to_string())?;
    Ok(expansion.nodes.into_iter().map(|node| node.key).collect())
}

/// Every kind of answer in one text.
fn said(snapshot: &Snapshot, stamp: u64) -> Result<String, String> {
    let fault = |error: hedgerow::QueryError| error.to_string();
    let vector = vector(&content::content(stamp), "seal")?;
    Ok(format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        content::texts(snapshot)?,
        snapshot.search_terms(&question(stamp), None, 100).map_err(fault)?,
        snapshot.search_vectors("letters", &vector, &VectorSearch::new(100)).map_err(fault)?,
        snapshot.ask(&Question::new(question(stamp)), MODELS).map_err(fault)?,
        snapshot.list_documents(usize::MAX).map_err(fault)?,
        snapshot.list_entities(usize::MAX).map_err(fault)?,
        snapshot.list_relations(usize::MAX).map_err(fault)?,
        expand(snapshot, EdgeKind::ALL.to_vec())?,
        snapshot.stats().map_err(fault)?,
        snapshot.fingerprint().map_err(|error| error.to_string())?,
    ))
}

fn question(stamp: u64) -> String {
    format!("Who owns Gate{stamp} at {}?", content::word(stamp))
}

/// The vector of a document.
fn vector(content: &BTreeMap<String, String>, key: &str) -> Result<Vec<f32>, String> {
    let text = content.get(key).ok_or_else(|| format!("there is no {key}"))?;
    let vectors = Letters.embed(&[&format!("{}\n{text}", content::title(key))]).map_err(|error| error.to_string())?;
    vectors.into_iter().next().flatten().ok_or_else(|| format!("{key} has no vector"))
}
