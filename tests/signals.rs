//! Edges from several signals, beside the published examples of another implementation of SAGE.

use crate::stores::{Place, change};
use hedgerow::{
    Batch, ChunkId, Description, Document, EdgeRules, EdgesBuilt, Explanation, Node, PairKind, Part, PartKind, Quiet,
    Signal, SignalKind, Snapshot, StagedChunk, StagedDocument, StagedEntity, StagedExtraction, StagedVector, Store,
};
use hedgerow_cli::read::delimited;
use serde_json::Value;
use std::collections::BTreeSet;

/// Half a unit in the last place of an f32 below 1, for each of three signals and their score, and half a digit of the file.
const CLOSE: f64 = 1.2e-7 + 5e-10;

fn example(name: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/sage").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).unwrap()
}

fn words(text: &str) -> BTreeSet<String> {
    text.to_lowercase().split_whitespace().map(str::to_owned).collect()
}

/// Jaccard's index.
fn overlap(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let [shared, all] =
        [a.intersection(b).count(), a.union(b).count()].map(|count| f64::from(u32::try_from(count).unwrap()));
    shared / all
}

fn signal(what: SignalKind, percentile: u32, weight: u32) -> Signal {
    Signal { what, percentile, weight }
}

/// A document of one chunk that has a vector, which says nothing.
fn staged(key: &str, title: &str, text: &str, entities: &[&str]) -> StagedDocument {
    let vector = StagedVector { space: "v".into(), model: "m".into(), components: vec![1.0] };
    let entities = entities.iter().flat_map(|name| StagedEntity::new(name, "thing")).collect();
    let (extractor, model) = ("x".into(), "m".into());
    let extraction = StagedExtraction { extractor, model, entities, relations: Vec::new() };
    let (range, vectors, extractions) = (0..u32::try_from(text.len()).unwrap(), vec![vector], vec![extraction]);
    let chunk = StagedChunk { range, vectors, extractions, ..StagedChunk::default() };
    let (name, title, text) = (key.into(), title.into(), text.into());
    StagedDocument { name, title, text, chunks: vec![chunk], ..StagedDocument::default() }
}

fn store_of(place: &Place, documents: impl IntoIterator<Item = StagedDocument>) -> Store {
    let store = place.open();
    let mut batch = Batch::default();
    for document in documents {
        batch.put(document);
    }
    store.commit(batch).unwrap();
    store
}

fn chunk(snapshot: &Snapshot, key: &str) -> ChunkId {
    match snapshot.find(&format!("chunk:{key}#0")).unwrap() {
        Node::Chunk(chunk) => chunk,
        _ => panic!("{key} has a chunk"),
    }
}

fn explained(store: &Store, a: &str, b: &str) -> Explanation {
    let snapshot = store.snapshot();
    let space = snapshot.spaces().unwrap()[0].name.clone();
    snapshot.explain([chunk(&snapshot, a), chunk(&snapshot, b)], &space).unwrap()
}

/// The keys of the documents that the first chunk of one has edges to, with their weights.
fn partners(store: &Store, key: &str) -> Vec<(String, f32)> {
    let snapshot = store.snapshot();
    let node = Node::Chunk(chunk(&snapshot, key));
    let Description::Chunk { similar, .. } = snapshot.describe(node, usize::MAX).unwrap() else {
        panic!("it is a chunk")
    };
    similar.into_iter().map(|(other, weight)| (other.split('#').next().unwrap().to_owned(), weight)).collect()
}

fn entities(node: &Value) -> Vec<&str> {
    node["entities"].as_object().unwrap().keys().map(String::as_str).collect()
}

/// The chunks of the example of eleven, and a store that has them as documents whose titles are their topics.
struct Chunks {
    example: Value,
    store: Store,
    built: Vec<EdgesBuilt>,
    _place: Place,
}

impl Chunks {
    /// With the edges above a percentile of the scores.
    fn with_edges(percentile: u32) -> Self {
        let (example, place) = (example("scifi.json"), Place::new());
        let of = |node: &Value| {
            staged(text(node, "/id"), text(node, "/metadata/topic"), text(node, "/content"), &entities(node))
        };
        let store = store_of(&place, list(&example, "/nodes").iter().map(of));
        let weights = [(SignalKind::Titles, 400), (SignalKind::Entities, 350), (SignalKind::Words, 250)];
        let signals = weights.into_iter().map(|(what, weight)| signal(what, percentile, weight)).collect();
        let rules = EdgeRules { signals, weighted: true, ..EdgeRules::new(percentile, 11) };
        let built = store.build_edges("v", &rules, &Quiet).unwrap();
        Self { example, store, built, _place: place }
    }

    fn nodes(&self) -> &[Value] {
        list(&self.example, "/nodes")
    }

    fn id(&self, row: usize) -> &str {
        text(&self.nodes()[row], "/id")
    }

    fn row(&self, id: &str) -> usize {
        self.nodes().iter().position(|node| node["id"] == id).unwrap()
    }

    /// The rows that a row has edges to.
    fn partners(&self, row: usize) -> impl Iterator<Item = usize> {
        partners(&self.store, self.id(row)).into_iter().map(|(key, _)| self.row(&key))
    }

    /// Half the share of the words of a question that stand anywhere in a chunk, half its overlap with the content.
    fn relevance(&self, question: &str) -> Vec<f64> {
        let question = question.to_lowercase();
        let asked: Vec<&str> = question.split_whitespace().collect();
        let of = |node: &Value| {
            let all = [text(node, "/content"), text(node, "/metadata/topic"), text(node, "/metadata/title")].join(" ");
            let all = format!("{all} {}", entities(node).join(" ")).to_lowercase();
            let held: f64 = asked.iter().map(|word| f64::from(u8::from(all.contains(word)))).sum();
            let share = held / f64::from(u32::try_from(asked.len()).unwrap());
            0.5 * share + 0.5 * overlap(&words(text(node, "/content")), &words(&question))
        };
        self.nodes().iter().map(of).collect()
    }
}

/// Rows by how well they fit, the best first, among equals in their order.
fn ranked(rows: impl IntoIterator<Item = usize>, relevance: &[f64], most: usize) -> Vec<usize> {
    let mut rows: Vec<usize> = rows.into_iter().collect();
    rows.sort_by(|a, b| relevance[*b].total_cmp(&relevance[*a]));
    rows.truncate(most);
    rows
}

#[test]
fn eleven_chunks_have_the_published_scores_threshold_and_edges() {
    let all = Chunks::with_edges(0);
    let expected = list(&all.example, "/computed_jaccard/all_pairs_sorted_desc");
    assert_eq!((expected.len(), all.built[0].report.kept), (55, 55));
    for pair in expected {
        let [a, b] = [&pair[0], &pair[1]].map(|id| id.as_str().unwrap());
        let score = partners(&all.store, a).into_iter().find(|partner| partner.0 == b).unwrap().1;
        assert!((f64::from(score) - pair[2].as_f64().unwrap()).abs() < CLOSE, "{pair}: {score}");
    }
    let chunks = Chunks::with_edges(95_000);
    let threshold = chunks.example["computed_jaccard"]["threshold"].as_f64().unwrap();
    let report = chunks.built[0].report;
    assert!((f64::from(report.threshold) - threshold).abs() < CLOSE);
    assert_eq!((report.pairs, report.passed, report.kept), (55, 3, 3));
    let mut found = BTreeSet::new();
    for edge in list(&chunks.example, "/computed_jaccard/edges") {
        let [a, b] = ["a", "b"].map(|end| text(edge, &format!("/{end}")));
        let why = explained(&chunks.store, a, b);
        for (verdict, name) in why.signals.iter().zip(["topic", "entity", "content"]) {
            let similarity = f64::from(verdict.similarity);
            assert!((similarity - edge[name].as_f64().unwrap()).abs() < CLOSE, "{name} of {edge}");
        }
        assert_eq!((why.signals.len(), why.edge, why.by_similarity), (3, why.weight, true));
        let shared: BTreeSet<String> = why.shared.into_iter().map(|(name, _)| name).collect();
        let expected = list(edge, "/shared").iter().map(|name| name.as_str().unwrap().to_owned());
        assert_eq!(shared, expected.collect());
        found.insert((chunks.row(a).min(chunks.row(b)), chunks.row(a).max(chunks.row(b))));
    }
    let chunks = &chunks;
    let built = (0..11).flat_map(|row| chunks.partners(row).map(move |other| (row.min(other), row.max(other))));
    assert_eq!(built.collect::<BTreeSet<_>>(), found);
}

#[test]
fn edges_of_eleven_chunks_expand_the_published_seeds_to_the_published_neighbours() {
    let chunks = Chunks::with_edges(95_000);
    let retrievals = list(&chunks.example, "/computed_jaccard/retrieval");
    assert_eq!(retrievals.len(), 4);
    for retrieval in retrievals {
        let relevance = chunks.relevance(text(retrieval, "/query"));
        let seeds = ranked(0..11, &relevance, 3);
        let reached: BTreeSet<usize> = seeds.iter().flat_map(|seed| chunks.partners(*seed)).collect();
        let expanded = ranked(reached.into_iter().filter(|row| !seeds.contains(row)), &relevance, 2);
        for (rows, name) in [(seeds, "/seeds"), (expanded, "/expanded")] {
            let expected = list(retrieval, name);
            let found: Vec<&str> = rows.iter().map(|row| chunks.id(*row)).collect();
            assert_eq!(found, expected.iter().map(|one| text(one, "/0")).collect::<Vec<_>>(), "{retrieval}");
            for (row, one) in rows.iter().zip(expected) {
                assert!((relevance[*row] - one[1].as_f64().unwrap()).abs() < 6e-7, "{one}: {}", relevance[*row]);
            }
        }
    }
}

#[test]
fn expanding_a_node_of_eleven_gives_the_published_neighbour() {
    let chunks = Chunks::with_edges(95_000);
    let published = &chunks.example["published"]["cosine_nv_embed_v1"]["expandNode(doc-scifi-ridley)"];
    let found: Vec<&str> = chunks.partners(chunks.row("doc-scifi-ridley")).map(|row| chunks.id(row)).collect();
    assert_eq!(Value::from(found), *published);
}

/// The names of the example of five: its authors give none, and speak of what the chunks share.
const NAMES: [&str; 5] = ["Inception", "Christopher Nolan", "Academy Awards", "Leonardo DiCaprio", "Titanic"];

#[test]
fn five_chunks_make_a_cluster_that_one_chunk_bridges_and_a_question_crosses() {
    let (example, place) = (example("inception.json"), Place::new());
    let rows = list(&example, "/nodes");
    let of = |node: &Value| {
        let content = text(node, "/content");
        let names: Vec<&str> = NAMES.into_iter().filter(|name| content.contains(name)).collect();
        staged(text(node, "/id"), "", content, &names)
    };
    let store = store_of(&place, rows.iter().map(of));
    let signals = vec![signal(SignalKind::Entities, 0, 0)];
    let built = store.build_edges("v", &EdgeRules { signals, ..EdgeRules::new(0, 5) }, &Quiet).unwrap();
    let others = |key: &str| partners(&store, key).into_iter().map(|one| one.0).collect::<Vec<_>>();

    let cluster: Vec<&str> = list(&example, "/expected/cluster").iter().map(|key| key.as_str().unwrap()).collect();
    let bridge = text(&example, "/expected/D_connected_only_via");
    for one in &cluster {
        assert!(cluster.iter().all(|other| other == one || others(one).iter().any(|key| key == other)));
    }
    assert_eq!((others("D"), built[0].report.components), (vec![bridge.to_owned()], 1));

    // Words without punctuation: the example's question ends in `film?`, and its chunks in full stops.
    let bare = |text: &str| -> BTreeSet<String> {
        words(text).iter().map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_owned()).collect()
    };
    let asked = bare(text(&example, "/expected/query"));
    let relevance: Vec<f64> = rows.iter().map(|node| overlap(&bare(text(node, "/content")), &asked)).collect();
    let row = |key: &str| rows.iter().position(|node| node["id"] == key).unwrap();
    let seed = ranked(0..5, &relevance, 1)[0];
    assert_eq!(rows[seed]["id"], example["expected"]["seed"]);
    let reached = others(text(&rows[seed], "/id")).into_iter().map(|key| row(&key));
    assert_eq!(rows[ranked(reached, &relevance, 1)[0]]["id"], example["expected"]["expand"]);
}

fn table(key: &str, text: &str) -> Document {
    let parts = vec![Part { range: 0..text.len(), kind: PartKind::Table, ..Part::default() }];
    Document { parts, ..Document::new(key).title(key).text(text) }
}

/// The two tables share a heading, a year column, and words; texts have no columns.
#[test]
fn the_tables_of_eleven_chunks_are_similar_by_their_columns() {
    let (example, place) = (example("scifi.json"), Place::new());
    let of = |node: &Value| {
        let (key, content) = (text(node, "/id"), text(node, "/content"));
        if text(node, "/type") == "TABLE" { table(key, content) } else { Document::new(key).title(key).text(content) }
    };
    let store = place.open();
    change(&store, list(&example, "/nodes").iter().map(of).collect(), &[]);
    let space = store.snapshot().spaces().unwrap()[0].name.clone();
    let signals = vec![signal(SignalKind::Columns, 0, 0)];
    let built = store.build_edges(&space, &EdgeRules { signals, ..EdgeRules::new(0, 11) }, &Quiet).unwrap();
    let kept: Vec<(PairKind, u64)> = built.iter().map(|built| (built.kind, built.report.kept)).collect();
    assert_eq!(kept, [(PairKind::DocumentDocument, 0), (PairKind::TableTable, 1), (PairKind::TableDocument, 0)]);
    // Year: 2021 of films is no word of awards, but the heading is: 1 of {year 1982 1979 2021 2016, 1966 2001 2022} = 1/8.
    // Director: {director ridley scott denis villeneuve} and Recipient: {recipient frank herbert ridley scott dune (2021)}: 2/10.
    // Film: {film blade runner alien dune arrival} has no word with Award or Category left, nor have Stars.
    let expected = (0.2 + 0.125) / 3.0;
    let [(other, weight)] = &partners(&store, "table-scifi-films")[..] else { panic!("there is one") };
    assert!(other == "table-awards" && (f64::from(*weight) - expected).abs() < CLOSE);
    let why = explained(&store, "doc-scifi-ridley", "table-awards");
    assert_eq!((why.signals[0].threshold, why.signals[0].agrees, why.weight, why.edge), (None, false, None, None));
}

#[test]
fn columns_of_tables_that_were_read_are_those_that_were_written() {
    let place = Place::new();
    let store = place.open();
    let document = |key: &str, csv: &str| {
        let parsed = delimited::read(csv, key, false).unwrap();
        let part = parsed.parts.iter().find(|part| part.kind == PartKind::Table).unwrap();
        table(key, &parsed.text[part.range.clone()])
    };
    let films = "Film,Director,Year\nAlien,Ridley Scott,1979\n,Denis Villeneuve,\nDune,,2021\nGate,,\n";
    let years = "Year,Prize\n1979,\n2021,Hugo\n";
    change(&store, vec![document("films", films), document("years", years)], &[]);
    let space = store.snapshot().spaces().unwrap()[0].name.clone();
    let signals = vec![signal(SignalKind::Columns, 0, 0)];
    store.build_edges(&space, &EdgeRules { signals, ..EdgeRules::new(0, 11) }, &Quiet).unwrap();
    // The years are the same, and no other word is; the narrower table has two columns.
    assert_eq!(partners(&store, "films"), [("years".to_owned(), 0.5)]);
}
