//! Edges from several signals, beside the published examples of another implementation of SAGE.

use crate::stores::{Place, change};
use hedgerow::composite::{Bar, Combination, Composite, CompositeRules, Ends, Relation, build};
use hedgerow::signals::{ColumnsBuilder, Overlap, SetsBuilder, Signal, Weighing, columns_of};
use hedgerow::{
    Document, EdgeRules, EdgesBuilt, JoinedChunks, PairKind, Part, PartKind, Quiet, Snapshot, Source, join_chunks,
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

fn words(text: &str) -> Vec<String> {
    text.to_lowercase().split_whitespace().map(str::to_owned).collect()
}

fn overlap_of_words<'t>(texts: impl IntoIterator<Item = &'t str>) -> Overlap {
    let mut sets = SetsBuilder::default();
    for text in texts {
        sets.push_words(text);
    }
    Overlap::new(sets.finish(), Weighing::Equal)
}

fn overlap_of<R: IntoIterator<Item: AsRef<[u8]>>>(rows: impl IntoIterator<Item = R>) -> Overlap {
    let mut sets = SetsBuilder::default();
    for row in rows {
        sets.push(row);
    }
    Overlap::new(sets.finish(), Weighing::Equal)
}

/// The chunks of the example of eleven.
struct Chunks {
    example: Value,
}

impl Chunks {
    fn read() -> Self {
        Self { example: example("scifi.json") }
    }

    fn nodes(&self) -> &[Value] {
        list(&self.example, "/nodes")
    }

    fn id(&self, row: usize) -> &str {
        text(&self.nodes()[row], "/id")
    }

    fn row(&self, id: &Value) -> usize {
        self.nodes().iter().position(|node| node["id"] == *id).unwrap()
    }

    fn entities(&self, row: usize) -> Vec<&str> {
        self.nodes()[row]["entities"].as_object().unwrap().keys().map(String::as_str).collect()
    }

    fn signals(&self) -> [Overlap; 3] {
        let rows = self.nodes();
        [
            overlap_of_words(rows.iter().map(|node| text(node, "/metadata/topic"))),
            overlap_of((0..rows.len()).map(|row| self.entities(row))),
            overlap_of_words(rows.iter().map(|node| text(node, "/content"))),
        ]
    }

    /// The edges above a percentile of the scores.
    fn edges(&self, percentile: u32) -> Composite {
        let [topics, entities, contents] = self.signals();
        let ranks: Vec<u32> = (0..11).collect();
        let combination =
            Combination::Weighted { weights: vec![0.4, 0.35, 0.25], bar: Bar { percentile, above: None } };
        let rules = CompositeRules { combination, nearest: None, top_m: 11, ends: Ends::Either };
        build(&[&topics, &entities, &contents], &ranks, Relation::Within, &rules, &Quiet).unwrap()
    }

    /// Half the share of the words of a question that stand anywhere in a chunk, half its overlap with the content.
    fn relevance(&self, question: &str) -> Vec<f64> {
        let rows = self.nodes();
        let asked = words(question);
        let overlap = overlap_of_words(rows.iter().map(|node| text(node, "/content")).chain([question]));
        let of = |(row, node): (usize, &Value)| {
            let all = [text(node, "/content"), text(node, "/metadata/topic"), text(node, "/metadata/title")].join(" ");
            let all = format!("{all} {}", self.entities(row).join(" ")).to_lowercase();
            let held: f64 = asked.iter().map(|word| f64::from(u8::from(all.contains(word)))).sum();
            let asked = f64::from(u32::try_from(asked.len()).unwrap());
            0.5 * held / asked + 0.5 * f64::from(overlap.similarity(u32::try_from(row).unwrap(), 11))
        };
        rows.iter().enumerate().map(of).collect()
    }
}

/// The partners of a row, with the weights of their edges.
fn partners(composite: &Composite, row: usize) -> Vec<(usize, f32)> {
    let edges = &composite.edges;
    let place = |row: usize| usize::try_from(edges.offsets[row]).unwrap();
    let range = place(row)..place(row + 1);
    let targets = edges.targets[range.clone()].iter().map(|target| *target as usize);
    targets.zip(edges.weights[range].iter().copied()).collect()
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
    let chunks = Chunks::read();
    let all = chunks.edges(0);
    let expected = list(&chunks.example, "/computed_jaccard/all_pairs_sorted_desc");
    assert_eq!((expected.len(), all.edges.report.kept), (55, 55));
    for pair in expected {
        let [a, b] = [&pair[0], &pair[1]].map(|id| chunks.row(id));
        let score = partners(&all, a).into_iter().find(|partner| partner.0 == b).unwrap().1;
        assert!((f64::from(score) - pair[2].as_f64().unwrap()).abs() < CLOSE, "{pair}: {score}");
    }
    let built = chunks.edges(95_000);
    let threshold = chunks.example["computed_jaccard"]["threshold"].as_f64().unwrap();
    assert!((f64::from(built.thresholds[0]) - threshold).abs() < CLOSE);
    assert_eq!((built.edges.report.pairs, built.edges.report.passed, built.edges.report.kept), (55, 3, 3));
    let mut found = BTreeSet::new();
    let signals = chunks.signals();
    for edge in list(&chunks.example, "/computed_jaccard/edges") {
        let [a, b] = ["a", "b"].map(|end| chunks.row(&edge[end]));
        let ends = [a, b].map(|row| u32::try_from(row).unwrap());
        for (signal, name) in signals.iter().zip(["topic", "entity", "content"]) {
            let similarity = f64::from(signal.similarity(ends[0], ends[1]));
            assert!((similarity - edge[name].as_f64().unwrap()).abs() < CLOSE, "{name} of {edge}");
        }
        let shared: Vec<&str> =
            chunks.entities(a).into_iter().filter(|name| chunks.entities(b).contains(name)).collect();
        assert_eq!(Value::from(shared), edge["shared"]);
        found.insert((a.min(b), a.max(b)));
    }
    let built: BTreeSet<(usize, usize)> = (0..11)
        .flat_map(|row| partners(&built, row).into_iter().map(move |(other, _)| (row.min(other), row.max(other))))
        .collect();
    assert_eq!(built, found);
}

#[test]
fn edges_of_eleven_chunks_expand_the_published_seeds_to_the_published_neighbours() {
    let chunks = Chunks::read();
    let edges = chunks.edges(95_000);
    let retrievals = list(&chunks.example, "/computed_jaccard/retrieval");
    assert_eq!(retrievals.len(), 4);
    for retrieval in retrievals {
        let relevance = chunks.relevance(text(retrieval, "/query"));
        let seeds = ranked(0..11, &relevance, 3);
        let reached: BTreeSet<usize> = seeds.iter().flat_map(|seed| partners(&edges, *seed)).map(|one| one.0).collect();
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
    let chunks = Chunks::read();
    let edges = chunks.edges(95_000);
    let published = &chunks.example["published"]["cosine_nv_embed_v1"]["expandNode(doc-scifi-ridley)"];
    let node = chunks.row(&Value::from("doc-scifi-ridley"));
    let found: Vec<&str> = partners(&edges, node).into_iter().map(|(row, _)| chunks.id(row)).collect();
    assert_eq!(Value::from(found), *published);
}

/// The two tables share a heading, a year column, and words; texts have no columns.
#[test]
fn the_tables_of_eleven_chunks_are_similar_by_their_columns() {
    let chunks = Chunks::read();
    let mut columns = ColumnsBuilder::default();
    for node in chunks.nodes() {
        columns.push(columns_of(text(node, "/content")));
    }
    let columns = columns.finish();
    let [films, awards] = ["table-scifi-films", "table-awards"].map(|id| chunks.row(&Value::from(id)));
    let [films, awards] = [films, awards].map(|row| u32::try_from(row).unwrap());
    // Year: 2021 of films is no word of awards, but the heading is: 1 of {year 1982 1979 2021 2016, 1966 2001 2022} = 1/8.
    // Director: {director ridley scott denis villeneuve} and Recipient: {recipient frank herbert ridley scott dune (2021)}: 2/10.
    // Film: {film blade runner alien dune arrival} has no word with Award or Category left, nor have Stars.
    let expected = (0.2 + 0.125) / 3.0;
    assert!((f64::from(columns.similarity(films, awards)) - expected).abs() < CLOSE);
    assert_eq!(columns.similarity(films, films).to_bits(), 1f32.to_bits());
    assert_eq!(columns.similarity(0, films).to_bits(), 0);
}

/// The names of the example of five: its authors give none, and speak of what the chunks share.
const NAMES: [&str; 5] = ["Inception", "Christopher Nolan", "Academy Awards", "Leonardo DiCaprio", "Titanic"];

#[test]
fn five_chunks_make_a_cluster_that_one_chunk_bridges_and_a_question_crosses() {
    let example = example("inception.json");
    let rows = list(&example, "/nodes");
    let contents: Vec<&str> = rows.iter().map(|node| text(node, "/content")).collect();
    let entities =
        overlap_of(contents.iter().map(|content| NAMES.iter().filter(|name| content.contains(**name)).copied()));
    let combination = Combination::Agree(vec![Bar { percentile: 0, above: Some(0.0) }]);
    let rules = CompositeRules { combination, nearest: None, top_m: 5, ends: Ends::Either };
    let edges = build(&[&entities], &[0, 1, 2, 3, 4], Relation::Within, &rules, &Quiet).unwrap();
    let row = |id: &Value| rows.iter().position(|node| node["id"] == *id).unwrap();
    let others = |row: usize| partners(&edges, row).into_iter().map(|one| one.0).collect::<Vec<_>>();

    let cluster: Vec<usize> = list(&example, "/expected/cluster").iter().map(row).collect();
    let bridge = row(&example["expected"]["D_connected_only_via"]);
    let titanic = row(&Value::from("D"));
    for one in &cluster {
        assert!(cluster.iter().all(|other| other == one || others(*one).contains(other)));
    }
    assert_eq!(others(titanic), [bridge]);
    assert_eq!(edges.edges.report.components, 1);

    // Words without punctuation: the example's question ends in `film?`, and its chunks in full stops.
    let bare = |text: &str| -> Vec<String> {
        words(text).iter().map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_owned()).collect()
    };
    let asked = overlap_of(contents.iter().chain([&text(&example, "/expected/query")]).map(|text| bare(text)));
    let relevance: Vec<f64> = (0..5).map(|row| f64::from(asked.similarity(row, 5))).collect();
    let seed = ranked(0..5, &relevance, 1)[0];
    assert_eq!(seed, row(&example["expected"]["seed"]));
    assert_eq!(ranked(others(seed), &relevance, 1)[0], row(&example["expected"]["expand"]));
}

fn table(key: &str, text: &str) -> Document {
    let parts = vec![Part { range: 0..text.len(), kind: PartKind::Table, ..Part::default() }];
    Document { parts, ..Document::new(key).title(key).text(text) }
}

/// The chunks of the example of eleven as documents, tables as tables, with their topics as titles.
fn documents(chunks: &Chunks) -> Vec<Document> {
    let of = |node: &Value| {
        let (key, content, topic) = (text(node, "/id"), text(node, "/content"), text(node, "/metadata/topic"));
        if text(node, "/type") == "TABLE" {
            table(key, content).title(topic)
        } else {
            Document::new(key).title(topic).text(content)
        }
    };
    chunks.nodes().iter().map(of).collect()
}

/// Edges by the keys of their documents, the lower first, with their weights.
fn by_key(snapshot: &Snapshot, joined: &JoinedChunks) -> BTreeSet<(String, String, u32)> {
    let key = |row: usize| snapshot.chunk(joined.chunks[row]).unwrap().document().unwrap().key().unwrap().to_owned();
    let rows = 0..joined.chunks.len();
    rows.flat_map(|row| {
        let partners = partners(&joined.composite, row).into_iter();
        partners.filter(move |(other, _)| row < *other).map(move |(other, weight)| (row, other, weight.to_bits()))
    })
    .map(|(row, other, weight)| (key(row).min(key(other)), key(row).max(key(other)), weight))
    .collect()
}

#[test]
fn edges_of_a_store_are_those_of_its_texts_and_titles_whatever_its_history() {
    let chunks = Chunks::read();
    let [topics, _, contents] = chunks.signals();
    let combination = Combination::Weighted { weights: vec![0.4, 0.25], bar: Bar { percentile: 80_000, above: None } };
    let rules = CompositeRules { combination, nearest: None, top_m: 11, ends: Ends::Either };
    let ranks: Vec<u32> = (0..11).collect();
    let expected = build(&[&topics, &contents], &ranks, Relation::Within, &rules, &Quiet).unwrap();
    let sources = [Source::Titles(Weighing::Equal), Source::Words(Weighing::Equal)];
    let mut seen = Vec::new();
    for reversed in [false, true] {
        let place = Place::new();
        let store = place.open();
        let mut documents = documents(&chunks);
        if reversed {
            documents.reverse();
            change(&store, vec![Document::new("gone").text("What is gone counts no more.")], &[]);
            change(&store, documents.split_off(6), &["gone"]);
        }
        change(&store, documents, &[]);
        let snapshot = store.snapshot();
        let joined = join_chunks(&snapshot, None, &sources, &rules, &Quiet).unwrap();
        assert_eq!(joined.composite.thresholds, expected.thresholds);
        assert_eq!(joined.composite.edges.report, expected.edges.report);
        let weighed = |name: Weighing| [Source::Titles(name), Source::Words(name)];
        let rare = join_chunks(&snapshot, None, &weighed(Weighing::Rarity), &rules, &Quiet).unwrap();
        seen.push((by_key(&snapshot, &joined), by_key(&snapshot, &rare)));
    }
    assert!(!seen[0].0.is_empty() && seen[0].0 != seen[0].1);
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn texts_and_tables_of_a_store_are_joined_as_asked_for() {
    let chunks = Chunks::read();
    let place = Place::new();
    let store = place.open();
    change(&store, documents(&chunks), &[]);
    store.refresh(&Quiet).unwrap();
    let snapshot = store.snapshot();
    let positive = Bar { percentile: 0, above: Some(0.0) };
    let joined = |kind: Option<PairKind>, sources: &[Source]| {
        let combination = Combination::Agree(vec![positive; sources.len()]);
        let rules = CompositeRules { combination, nearest: None, top_m: 11, ends: Ends::Either };
        join_chunks(&snapshot, kind, sources, &rules, &Quiet)
    };
    let tables = joined(Some(PairKind::TableTable), &[Source::Columns]).unwrap();
    assert_eq!((tables.chunks.len(), tables.composite.edges.report.kept), (2, 1));
    let columns = f64::from(tables.composite.edges.weights[0]);
    assert!((columns - (0.2 + 0.125) / 3.0).abs() < CLOSE);
    assert_eq!(joined(None, &[Source::Columns]).unwrap().composite.edges.report.passed, 1);

    let entities = [Source::Entities(Weighing::Rarity), Source::Words(Weighing::Equal)];
    let across = joined(Some(PairKind::TableDocument), &entities).unwrap();
    assert_eq!((across.chunks.len(), across.composite.edges.report.pairs), (11, 9 * 2));
    let edges = by_key(&snapshot, &across);
    assert!(edges.iter().all(|edge| edge.0.starts_with("table-") != edge.1.starts_with("table-")), "{edges:?}");
    let ridley = |edge: &&(String, String, u32)| edge.0 == "doc-scifi-ridley" && edge.1 == "table-scifi-films";
    assert!(edges.iter().any(|edge| ridley(&edge)), "{edges:?}");
    assert_eq!(joined(Some(PairKind::DocumentDocument), &entities).unwrap().composite.edges.report.pairs, 9 * 8 / 2);

    let vectors = joined(None, &[Source::Vectors(String::from("none"))]).unwrap_err();
    assert!(vectors.to_string().contains("no vector space none"), "{vectors}");
}

#[test]
fn edges_by_one_space_alone_are_those_that_the_store_builds() {
    let chunks = Chunks::read();
    let place = Place::new();
    let store = place.open();
    change(&store, documents(&chunks), &[]);
    let space = store.snapshot().spaces().unwrap()[0].name.clone();
    let built = store.build_edges(&space, &EdgeRules::new(80_000, 3), &Quiet).unwrap();
    assert_eq!(built.len(), 3);
    let snapshot = store.snapshot();
    let combination = Combination::Agree(vec![Bar { percentile: 80_000, above: None }]);
    let rules = CompositeRules { combination, nearest: None, top_m: 3, ends: Ends::Either };
    for EdgesBuilt { kind, report, .. } in built {
        let sources = [Source::Vectors(space.clone())];
        let found = join_chunks(&snapshot, Some(kind), &sources, &rules, &Quiet).unwrap().composite.edges.report;
        assert_eq!(found.threshold.map(f32::to_bits), Some(report.threshold.to_bits()), "{kind:?}");
        assert_eq!((u64::from(found.rows), found.pairs, found.passed), (report.rows, report.pairs, report.passed));
        assert_eq!((found.kept, found.components), (report.kept, report.components));
    }
}

#[test]
fn columns_of_a_table_that_was_read_are_those_that_were_written() {
    let csv = "Film,Director,Year\nAlien,Ridley Scott,1979\n,Denis Villeneuve,\nDune,,2021\nGate,,\n";
    let parsed = delimited::read(csv, "films", false).unwrap();
    let tables = parsed.parts.iter().filter(|part| part.kind == PartKind::Table);
    let columns: Vec<Vec<String>> = tables.map(|part| columns_of(&parsed.text[part.range.clone()])).collect();
    let expected = ["Film\nAlien\n\nDune\nGate", "Director\nRidley Scott\nDenis Villeneuve\n", "Year\n1979\n2021"];
    assert_eq!(columns, [expected]);
    let text: Vec<&Part> = parsed.parts.iter().filter(|part| part.kind == PartKind::Text).collect();
    assert!(columns_of(&parsed.text[text[0].range.clone()]).is_empty());
}
