//! Communities of entities: found, reported, kept while nothing changes, and in step with what is live.

use crate::stores::{Letters, Place, ask, change, document};
use hedgerow::{
    Batch, CommunitiesBuilt, CommunityContent, CommunityDescription, CommunityLine, CommunityRules, Context,
    Description, Embed, Extractive, Filter, Legs, Listing, ModelError, Models, Question, Quiet, Snapshot, Store,
    Strategy, Summarize, Summary, verify,
};
use std::sync::Mutex;

/// Documents about two circles of friends, who share one acquaintance.
fn documents() -> Vec<(String, String)> {
    let mut documents = Vec::new();
    for circle in [["Alice", "Bertha", "Carol", "Dora"], ["Edgar", "Frank", "Gustav", "Henry"]] {
        for (place, one) in circle.iter().enumerate() {
            for other in &circle[place + 1..] {
                let text = format!("{one} met {other} at the harbour, and {one} greeted {other} there.");
                documents.push((format!("{one} and {other}"), text));
            }
        }
    }
    documents.push(("bridge".into(), "Dora wrote to Edgar.".into()));
    documents
}

fn put_all(store: &Store) {
    let staged = documents().iter().map(|(key, text)| document(key, text)).collect();
    let (staged, _) = change(store, staged, &[]);
    assert_eq!(staged.rejected, []);
    store.refresh(&Quiet).expect("the store can be brought in step");
}

fn rules() -> CommunityRules {
    CommunityRules { members_max: 3, ..CommunityRules::default() }
}

fn build(store: &Store) -> CommunitiesBuilt {
    store.build_communities(&rules(), &Extractive, None, &Quiet).expect("communities can be found")
}

fn lines(snapshot: &Snapshot) -> Vec<CommunityLine> {
    let Listing::Communities(lines) = snapshot.list_communities(None, usize::MAX).expect("they can be listed") else {
        panic!("communities are listed as communities");
    };
    lines
}

fn described(snapshot: &Snapshot, id: &str) -> CommunityDescription {
    let node = snapshot.find(&format!("community:{id}")).expect("it is there");
    match snapshot.describe(node, 50).expect("it can be described") {
        Description::Community(community) => community,
        other => panic!("a community is described as {other:?}"),
    }
}

fn all(snapshot: &Snapshot) -> Vec<CommunityDescription> {
    lines(snapshot).iter().map(|line| described(snapshot, &line.id)).collect()
}

#[test]
fn circles_of_entities_are_found_with_reports_that_cite_chunks() {
    let place = Place::new();
    let store = place.open();
    put_all(&store);
    assert_eq!(lines(&place.read()), []);
    let built = build(&store);
    let snapshot = place.read();
    let found = all(&snapshot);
    assert_eq!(built.kept, 0);
    assert_eq!(built.made, found.len() as u64);
    let circle = |name: &str| {
        let has = |community: &&CommunityDescription| {
            community.line.level == 0 && community.entities.iter().any(|entity| entity == name)
        };
        found.iter().find(has).expect("every entity is in a community")
    };
    let [one, other] = ["Alice", "Gustav"].map(circle);
    assert_ne!(one.line.id, other.line.id);
    for (community, names) in [(one, ["Alice", "Bertha", "Carol"]), (other, ["Frank", "Gustav", "Henry"])] {
        assert!(names.iter().all(|name| community.entities.iter().any(|entity| entity == name)), "{community:?}");
        assert!(!community.line.stale && community.line.model.is_empty());
        assert!(!community.citations.is_empty());
        // A sentence is told with the chunk that it stands in, word for word.
        let cited = community.citations.iter().filter(|key| community.text.contains(&format!("[{key}]")));
        assert!(cited.count() > 0, "{}", community.text);
        assert!(community.text.contains("met"), "{}", community.text);
    }
    for community in &found {
        for part in &community.parts {
            let part = described(&snapshot, &part.id);
            assert_eq!(part.parent.as_ref(), Some(&community.line.id));
            assert!(part.entities.iter().all(|entity| community.entities.contains(entity)));
            assert_eq!(part.line.level, community.line.level + 1);
        }
    }
    let report =
        verify(&hedgerow::Env::folder(&place.path()).expect("it is a folder"), &Quiet).expect("it can be read");
    assert_eq!(report.problems, [] as [String; 0]);
}

#[test]
fn communities_follow_changes_as_if_they_were_made_of_what_is_live() {
    let place = Place::new();
    let store = place.open();
    put_all(&store);
    build(&store);
    let before = all(&place.read());
    // One more document about one of the circles, and one less about the same.
    let (_, committed) = change(
        &store,
        vec![document("more", "Bertha met Carol again, and Bertha greeted Alice.")],
        &["Bertha and Carol"],
    );
    assert_eq!(committed.deleted, 1);
    let behind = all(&place.read());
    assert!(behind.iter().all(|community| community.line.stale));
    store.refresh(&Quiet).expect("the store can be brought in step");
    let after = all(&place.read());
    assert!(after.iter().all(|community| !community.line.stale));
    // What the change is not about is as it was, with the same id.
    let untouched = |community: &&CommunityDescription| community.entities.iter().any(|entity| entity == "Gustav");
    let kept: Vec<&CommunityDescription> = before.iter().filter(untouched).collect();
    assert!(!kept.is_empty());
    for community in kept {
        assert!(after.iter().any(|other| other.line.id == community.line.id && other.text == community.text));
    }
    // A store that never had another history has the same communities.
    let fresh = Place::new();
    let other = fresh.open();
    let mut documents: Vec<_> = documents()
        .iter()
        .filter(|(key, _)| key != "Bertha and Carol")
        .map(|(key, text)| document(key, text))
        .collect();
    documents.insert(0, document("more", "Bertha met Carol again, and Bertha greeted Alice."));
    change(&other, documents, &[]);
    build(&other);
    assert_eq!(all(&fresh.read()), after);
}

#[test]
fn a_chunk_that_no_report_is_drawn_from_leaves_all_of_them() {
    let place = Place::new();
    let store = place.open();
    let often = |round: usize| documents().into_iter().map(move |(key, text)| (format!("{key} {round}"), text));
    let staged = (0..6).flat_map(often).map(|(key, text)| document(&key, &text)).collect();
    change(&store, staged, &[]);
    build(&store);
    let before = all(&place.read());
    // One chunk more of the many that mention two members of a circle.
    change(&store, vec![document("Alice and Bertha 7", "Alice met Bertha at the harbour.")], &[]);
    store.refresh(&Quiet).expect("the store can be brought in step");
    let reports = |communities: &[CommunityDescription]| -> Vec<(String, String)> {
        communities.iter().map(|community| (community.line.id.clone(), community.text.clone())).collect()
    };
    let after = all(&place.read());
    assert!(!after.is_empty() && after.iter().all(|community| !community.line.stale));
    let (mut before, mut after) = (reports(&before), reports(&after));
    before.sort();
    after.sort();
    assert_eq!(after, before);
}

/// Writes reports that name their members, and counts how many.
#[derive(Default)]
struct Writer {
    asked: Mutex<Vec<CommunityContent>>,
    fails_on: Option<&'static str>,
}

impl Summarize for Writer {
    fn model(&self) -> &'static str {
        "writer-1"
    }

    fn summarize(&self, community: &CommunityContent) -> Result<Summary, ModelError> {
        self.asked.lock().expect("no one panicked").push(community.clone());
        let names: Vec<&str> = community.entities.iter().map(|entity| entity.name.as_str()).collect();
        if self.fails_on.is_some_and(|name| names.contains(&name)) {
            return Err(ModelError { model: "writer-1".into(), reason: "it is tired".into() });
        }
        Ok(Summary { title: "written".into(), text: names.join(" and ") })
    }
}

#[test]
fn reports_of_a_model_are_asked_for_once_and_kept_while_nothing_changes_that_they_are_made_of() {
    let place = Place::new();
    let store = place.open();
    put_all(&store);
    let writer = Writer::default();
    let built = store.build_communities(&rules(), &writer, None, &Quiet).expect("communities can be found");
    let count = writer.asked.lock().expect("no one panicked").len();
    assert_eq!((built.made, built.kept), (count as u64, 0));
    let asked = writer.asked.lock().expect("no one panicked")[0].clone();
    assert!(!asked.entities.is_empty() && !asked.passages.is_empty() && asked.entities.len() >= 2);
    // The same again asks nothing.
    let again = store.build_communities(&rules(), &writer, None, &Quiet).expect("communities can be found");
    assert_eq!((again.made, again.kept), (0, count as u64));
    // After a change, what it is not about keeps the model's report; the rest is drawn from the store until the model is asked.
    change(&store, vec![document("more", "Alice met Bertha again.")], &[]);
    store.refresh(&Quiet).expect("the store can be brought in step");
    let found = all(&place.read());
    let (kept, drawn): (Vec<_>, Vec<_>) = found.iter().partition(|community| community.line.model == "writer-1");
    assert!(kept.iter().any(|community| community.entities.contains(&"Gustav".to_owned())));
    assert!(drawn.iter().any(|community| community.entities.contains(&"Alice".to_owned())));
    let last = store.build_communities(&rules(), &writer, None, &Quiet).expect("communities can be found");
    assert_eq!((last.made, last.kept), (drawn.len() as u64, kept.len() as u64));
    // Another model writes all of them; where it fails, the store is drawn from, and that is told.
    let other = Writer { fails_on: Some("Gustav"), ..Writer::default() };
    change(&store, vec![document("most", "Gustav met Henry again.")], &[]);
    let failed = store.build_communities(&rules(), &other, None, &Quiet).expect("communities can be found");
    assert!(failed.failed.iter().any(|reason| reason.contains("it is tired")), "{failed:?}");
    let found = all(&place.read());
    assert!(found.iter().any(|community| community.line.model.is_empty()));
}

/// A vector of two components, by the length of a text.
struct Lengths;

impl Embed for Lengths {
    fn space(&self) -> &'static str {
        "lengths"
    }

    fn model(&self) -> &'static str {
        "lengths-1"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        let vector = |text: &&str| Some(vec![1.0, f32::from(u8::try_from(text.len() % 200).expect("it fits"))]);
        Ok(texts.iter().map(vector).collect())
    }
}

#[test]
fn the_same_communities_are_written_whatever_the_number_of_threads_and_survive_reopening_and_compaction() {
    let written = |threads: usize| {
        let place = Place::new();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be made");
        pool.install(|| {
            let store = place.open();
            put_all(&store);
            store.build_communities(&rules(), &Extractive, Some(&Lengths), &Quiet).expect("communities can be found");
        });
        let found = all(&place.read());
        let store = place.open();
        store.compact(&Quiet).expect("it can be compacted");
        assert_eq!(all(&place.read()), found);
        let folder = place.path().join("projections");
        let files =
            std::fs::read_dir(folder).expect("there is the folder").map(|entry| entry.expect("it is read").path());
        let file = files.into_iter().find(|path| path.to_string_lossy().ends_with(".communities.prj"));
        let bytes = std::fs::read(file.expect("there is one")).expect("it can be read");
        // The header names the file; what follows it follows from the content.
        (found, bytes[256..].to_vec())
    };
    let (one, two) = (written(1), written(2));
    assert_eq!(one.0, two.0);
    assert!(one.1 == two.1, "the bytes differ");
}

#[test]
fn a_store_without_entities_has_no_communities() {
    let place = Place::new();
    let store = place.open();
    assert_eq!(build(&store).levels, []);
    store.commit(Batch::default()).expect("an empty batch is sound");
    assert_eq!(lines(&place.read()), []);
    assert!(place.read().find("community:00").is_err());
}

fn asked(snapshot: &Snapshot, text: &str, strategy: Strategy, filter: Option<&str>) -> Context {
    let filter = filter.map(|filter| Filter::parse(filter).expect("it is a filter"));
    let question = Question { strategy, filter, ..Question::new(text) };
    snapshot.ask(&question, Models { embedder: Some(&Lengths), extractor: None }).expect("it has an answer")
}

#[test]
fn questions_are_answered_by_reports_and_by_what_communities_hold_together() {
    let place = Place::new();
    let store = place.open();
    put_all(&store);
    let question = "Whom did Gustav and Henry greet at the harbour?";
    let without = asked(&place.read(), question, Strategy::Reports, None);
    assert!(without.incomplete.iter().any(|lack| lack.contains("no communities")), "{:?}", without.incomplete);
    assert!(without.reports.is_empty() && !without.passages.is_empty());
    store.build_communities(&rules(), &Extractive, Some(&Lengths), &Quiet).expect("communities can be found");
    let snapshot = place.read();
    let by_reports = asked(&snapshot, question, Strategy::Reports, None);
    let first = by_reports.reports.first().expect("a community tells of it");
    let community = described(&snapshot, first.key.trim_start_matches("community:"));
    assert!(community.entities.iter().any(|entity| entity == "Gustav"), "{community:?}");
    assert_eq!((&first.text, first.stale), (&community.text, false));
    let told: usize = by_reports.reports.iter().map(|report| report.tokens).sum();
    let passages: usize = by_reports.passages.iter().map(|passage| passage.tokens).sum();
    assert_eq!(by_reports.tokens, told + passages);
    for context in [&by_reports, &asked(&snapshot, question, Strategy::Subgraph, None)] {
        let held = context.passages.iter().find(|passage| passage.legs.community > 0.0);
        let held = held.expect("a community gives a passage something");
        assert_eq!(held.path.iter().map(|step| step.by).collect::<Vec<_>>(), ["community", "tells of it"]);
        assert!(context.passages.is_sorted_by(|a, b| a.score >= b.score));
        for passage in &context.passages {
            let Legs { terms, vector, named, link, walk, choice, community } = passage.legs;
            assert!((terms + vector + named + link + walk + choice + community - passage.score).abs() < 1e-5);
        }
    }
    // Beside the walk there is a quarter of the budget for reports.
    let (graph, combined) =
        (asked(&snapshot, question, Strategy::Graph, None), asked(&snapshot, question, Strategy::Combined, None));
    assert!(graph.reports.is_empty() && !combined.reports.is_empty());
    let keys = |context: &Context| context.passages.iter().map(|passage| passage.key.clone()).collect::<Vec<_>>();
    assert_eq!(keys(&graph), keys(&combined));
    // A filter holds inside all of them: reports too are chosen by what it lets through alone.
    for strategy in [Strategy::Reports, Strategy::Subgraph, Strategy::Combined] {
        let filtered = asked(&snapshot, question, strategy, Some("key = \"Alice and Bertha\""));
        assert!(
            filtered.passages.iter().all(|passage| ["Alice and Bertha", "bridge"].contains(&passage.document.as_str()))
        );
        for report in &filtered.reports {
            let community = described(&snapshot, report.key.trim_start_matches("community:"));
            assert!(community.entities.contains(&"Alice".to_owned()), "{community:?}");
        }
    }
    // A level alone.
    let question = Question { strategy: Strategy::Reports, level: Some(0), ..Question::new(question) };
    let context = snapshot.ask(&question, Models::default()).expect("it has an answer");
    assert!(!context.reports.is_empty() && context.reports.iter().all(|report| report.level == 0));
}

#[test]
fn new_reports_get_vectors_by_the_embedder_of_the_others_and_answers_say_where_they_lack() {
    let place = Place::new();
    let store = place.open();
    put_all(&store);
    let counted = || place.read().stats().expect("it counts").communities;
    assert_eq!(counted(), None);
    store.build_communities(&rules(), &Extractive, Some(&Letters), &Quiet).expect("communities can be found");
    let vectors = || counted().map(|counted| (counted.communities, counted.vectors)).expect("there are communities");
    let (all, with) = vectors();
    assert_eq!((counted().expect("there are").space.as_str(), all), ("letters", with));
    let question = "Whom did Alice and Bertha greet at the harbour?";
    let lacks = || ask(&place.read(), question, Strategy::Reports).incomplete;
    assert_eq!(lacks(), [] as [String; 0]);
    // Without an embedder, or by that of another space, what is new has none; neither is it forgotten.
    let none: [&dyn Embed; 0] = [];
    for (key, embedders) in [("more", &none[..]), ("most", &[&Lengths])] {
        change(&store, vec![document(key, "Alice met Bertha again.")], &[]);
        store.refresh_with(embedders, &Quiet).expect("the store can be brought in step");
        let (all, with) = vectors();
        assert!(0 < with && with < all, "{with} of {all}");
        assert!(lacks().iter().any(|lack| lack.contains("have no vector yet")), "{:?}", lacks());
    }
    change(&store, vec![document("last", "Gustav met Henry again.")], &[]);
    store.refresh_with(&[&Lengths, &Letters], &Quiet).expect("the store can be brought in step");
    let (all, with) = vectors();
    assert_eq!((all, lacks()), (with, vec![]));
    // Reports of another space are told of, where a question has a vector.
    store.build_communities(&rules(), &Extractive, Some(&Lengths), &Quiet).expect("communities can be found");
    assert!(lacks().iter().any(|lack| lack.contains("no vectors in the space letters")), "{:?}", lacks());
}
