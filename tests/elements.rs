//! Vector spaces of every element and metric beside a model that rounds and compares by itself.

use crate::command::{Folder, Run, command, told};
use crate::edge_lists::shaped;
use crate::stores::Numbers;
use hedgerow::{
    Batch, CommitError, EdgeError, EdgeRules, Element, Env, Metric, Models, QueryError, Question, Quiet, Recall,
    Snapshot, SpaceKind, StagedChunk, StagedDocument, StagedVector, Store, Target, VectorSearch, dot, salvage, verify,
};
use hedgerow_durability::Disk;
use std::collections::BTreeMap;
use std::sync::Arc;

const DIMENSIONS: usize = 19;

fn kinds() -> impl Iterator<Item = SpaceKind> {
    let of = |element| Metric::ALL.into_iter().map(move |metric| SpaceKind { element, metric });
    Element::ALL.into_iter().flat_map(of)
}

/// So many binary digits of a number, rounded by `round`, none of them below 2 to the power of `least`.
#[expect(clippy::cast_possible_truncation, reason = "exponents are small")]
fn digits(number: f64, digits: i32, least: i32, round: fn(f64) -> f64) -> f64 {
    let exponent = (number.abs().log2().floor() + 1.0).max(-1e6) as i32 - digits;
    let place = 2.0_f64.powi(exponent.max(least));
    round(number / place) * place
}

/// What a space stores of a vector.
#[expect(clippy::cast_possible_truncation, reason = "what is stored is exact in f32")]
fn stored(kind: SpaceKind, given: &[f32]) -> Vec<f32> {
    let wide = given.iter().map(|component| f64::from(*component));
    match kind.element {
        Element::F32 => given.to_vec(),
        Element::F16 => wide.map(|x| digits(x, 11, -24, f64::round_ties_even) as f32).collect(),
        Element::I8 => {
            let most = wide.clone().fold(0.0, |most: f64, x| most.max(x.abs()));
            let codes: Vec<f64> = wide.map(|x| (x * 127.0 / most).round_ties_even()).collect();
            let scale = match kind.metric {
                Metric::Cosine => 1.0 / codes.iter().map(|code| code * code).sum::<f64>().sqrt(),
                Metric::Dot | Metric::L2 => most / 127.0,
            };
            codes.iter().map(|code| (code * digits(scale, 16, -1000, f64::floor)) as f32).collect()
        }
    }
}

/// The stored vectors by the names of their documents.
type Model = BTreeMap<String, Vec<f32>>;

struct Life {
    kind: SpaceKind,
    disk: Disk,
    store: Store,
    model: Model,
    numbers: Numbers,
}

fn env(disk: &Disk) -> Env {
    let mut env = Env::seeded(Arc::new(disk.clone()), 7);
    env.index_from = 100;
    env
}

fn vector(space: &str, components: &[f32]) -> StagedVector {
    StagedVector { space: space.into(), model: "m".into(), components: components.to_vec() }
}

fn document(name: &str, vectors: Vec<StagedVector>) -> StagedDocument {
    let mut fingerprint = [0; 16];
    let components = vectors.iter().flat_map(|vector| &vector.components);
    fingerprint.iter_mut().zip(components.flat_map(|x| x.to_le_bytes())).for_each(|(place, byte)| *place = byte);
    let chunks = vec![StagedChunk { range: 0..1, vectors, ..StagedChunk::default() }];
    StagedDocument { name: name.to_owned(), text: "x".into(), chunks, fingerprint, ..StagedDocument::default() }
}

impl Life {
    fn new(kind: SpaceKind) -> Self {
        let disk = Disk::default();
        let store = Store::open_or_create_in(env(&disk)).expect("the store opens");
        Self { kind, store, disk, model: Model::new(), numbers: Numbers(23) }
    }

    /// A vector near one of a few centres, of length one where that is asked for.
    fn drawn(&mut self) -> Vec<f32> {
        let mut of_centre = Numbers(self.numbers.below(9) as u64);
        let draw = |numbers: &mut Numbers| f32::from(u8::try_from(numbers.below(200)).expect("below 200")) / 7.0 - 14.2;
        let mut components: Vec<f32> =
            (0..DIMENSIONS).map(|_| 2.0 * draw(&mut of_centre) + draw(&mut self.numbers)).collect();
        if self.kind.metric == Metric::Cosine {
            hedgerow::normalise(&mut components).expect("it has a direction");
        }
        components
    }

    fn add(&mut self, names: impl Iterator<Item = usize>) {
        let mut batch = Batch::default();
        batch.space("v", self.kind);
        for name in names {
            let (name, components) = (format!("{name:05}"), self.drawn());
            batch.put(document(&name, vec![vector("v", &components)]));
            self.model.insert(name, stored(self.kind, &components));
        }
        self.store.commit(batch).expect("the batch is sound");
    }

    /// Another vector for some, and no document any more of others; the kind of the space is not told again.
    fn change(&mut self) {
        let mut batch = Batch::default();
        for name in self.model.keys().cloned().collect::<Vec<_>>() {
            let drawn = self.numbers.below(5);
            if drawn == 0 {
                let components = self.drawn();
                batch.set_vector(Target { document: name.clone(), chunk: None }, vector("v", &components));
                self.model.insert(name, stored(self.kind, &components));
            } else if drawn == 1 {
                batch.delete(&name);
                self.model.remove(&name);
            }
        }
        self.store.commit(batch).expect("the batch is sound");
    }

    /// How near a stored vector is, and the order of that.
    fn score(&self, question: &[f32], row: &[f32]) -> (f32, f32) {
        match self.kind.metric {
            Metric::Cosine | Metric::Dot => (dot(question, row), -dot(question, row)),
            Metric::L2 => {
                let difference: Vec<f32> = question.iter().zip(row).map(|(a, b)| a - b).collect();
                (dot(&difference, &difference), dot(&difference, &difference))
            }
        }
    }

    /// Asks a few questions: what is found is what the model finds, with the same bits.
    fn ask(&mut self, snapshot: &Snapshot, when: &str) {
        let own = snapshot.spaces().expect("they are read");
        assert_eq!((own.len(), own[0].kind, own[0].vectors), (1, self.kind, self.model.len() as u64), "{when}");
        let stats = &snapshot.stats().expect("it is read").spaces[0];
        assert_eq!((stats.element, stats.metric), (self.kind.element.name(), self.kind.metric.name()));
        for _ in 0..6 {
            let question = self.drawn();
            let scored = self.model.iter().map(|(name, row)| (format!("{name}#0"), self.score(&question, row)));
            let mut expected: Vec<(String, (f32, f32))> = scored.collect();
            expected.sort_by(|a, b| a.1.1.total_cmp(&b.1.1).then_with(|| a.0.cmp(&b.0)));
            for recall in [Recall::Exact, Recall::At99] {
                let search = VectorSearch { recall, ..VectorSearch::new(8) };
                let found = snapshot.search_vectors("v", &question, &search).expect("it is answered");
                assert_eq!(found.len(), 8);
                for (place, one) in found.iter().enumerate() {
                    let (key, score) = if recall == Recall::Exact || self.kind.metric != Metric::Cosine {
                        (&expected[place].0, expected[place].1.0)
                    } else {
                        let own = expected.iter().find(|(key, _)| *key == one.key).expect("it is live");
                        (&own.0, own.1.0)
                    };
                    assert_eq!((&one.key, one.score.to_bits()), (key, score.to_bits()), "{:?}, {when}", self.kind);
                }
            }
        }
    }

    fn reopened(self) -> Self {
        let Self { kind, disk, store, model, numbers } = self;
        drop(store);
        let store = Store::open_in(env(&disk)).expect("the store opens");
        Self { kind, disk, store, model, numbers }
    }
}

#[test]
fn every_element_and_metric_finds_what_a_model_finds_whatever_happens_to_the_store() {
    for kind in kinds() {
        let mut life = Life::new(kind);
        life.add(0..220);
        life.ask(&life.store.snapshot().clone(), "added");
        life.store.refresh(&Quiet).expect("the store is sound");
        assert_eq!(life.store.snapshot().has_vector_index("v"), kind.metric == Metric::Cosine);
        life.ask(&life.store.snapshot().clone(), "refreshed");
        life.change();
        life.ask(&life.store.snapshot().clone(), "changed");
        let before = life.store.snapshot().fingerprint().expect("it is read");
        life.store.compact(&Quiet).expect("the store is sound");
        life.ask(&life.store.snapshot().clone(), "compacted");
        assert_eq!(life.store.snapshot().fingerprint().expect("it is read"), before, "{kind:?}");
        life.add(180..260);
        life.store.refresh(&Quiet).expect("the store is sound");
        let mut life = life.reopened();
        life.ask(&life.store.snapshot().clone(), "opened again");
        let problems = verify(&env(&life.disk), &Quiet).expect("it is read").problems;
        assert_eq!(problems, Vec::<String>::new(), "{kind:?}");
        // Copies have the same vectors.
        let snapshot = life.store.snapshot().clone();
        let content = snapshot.fingerprint().expect("it is read");
        let copied = hedgerow::canonical(&snapshot, Arc::new(Disk::default()), &Quiet).expect("it is copied");
        assert_eq!(copied.snapshot().fingerprint().expect("it is read"), content, "{kind:?}");
        life.ask(&copied.snapshot().clone(), "copied");
        let disk = life.disk.clone();
        let mut life = Life { store: copied, ..life };
        let (saved, found) = salvage(&env(&disk), env(&Disk::default()), &Quiet).expect("there is a store");
        assert!(found.lost.is_empty(), "{kind:?}: {:?}", found.lost);
        life.ask(&saved.snapshot().clone(), "salvaged");
    }
}

#[test]
fn the_same_vector_again_changes_nothing_and_a_fingerprint_tells_kinds_apart() {
    let mut fingerprints = Vec::new();
    for kind in kinds() {
        let mut life = Life::new(kind);
        life.add(0..1);
        let components = life.drawn();
        for expected in [1, 0] {
            let mut batch = Batch::default();
            batch.set_vector(Target { document: "00000".into(), chunk: None }, vector("v", &components));
            assert_eq!(life.store.commit(batch).expect("the batch is sound").vectors, expected, "{kind:?}");
        }
        // What is read is stored as it is.
        let snapshot = life.store.snapshot().clone();
        let chunk = snapshot.find_document("00000").expect("it is read").expect("it is there").chunks().next();
        let bounded = snapshot.bounded(hedgerow::QueryLimits::default());
        let read = bounded.vector("v", chunk.expect("it has one")).expect("it is read").expect("it has one");
        assert_eq!(read, stored(kind, &components));
        let mut batch = Batch::default();
        batch.set_vector(Target { document: "00000".into(), chunk: None }, vector("v", &read));
        assert_eq!(life.store.commit(batch).expect("the batch is sound").vectors, 0, "{kind:?}");
        fingerprints.push(format!("{:?}", snapshot.fingerprint().expect("it is read")));
    }
    fingerprints.sort();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 9);
}

#[test]
fn what_does_not_fit_a_space_is_refused() {
    let mut life = Life::new(SpaceKind { element: Element::F16, metric: Metric::Dot });
    life.add(0..3);
    let mut batch = Batch::default();
    batch.space("v", SpaceKind::default());
    match life.store.commit(batch) {
        Err(CommitError::SpaceKind { space, expected, found }) => {
            assert_eq!((space.as_str(), expected, found), ("v", life.kind, SpaceKind::default()));
        }
        other => panic!("another kind is taken: {other:?}"),
    }
    for (component, said) in [(65_505.0, "65504"), (f32::NAN, "NaN"), (f32::NEG_INFINITY, "-inf")] {
        let mut components = life.drawn();
        components[4] = component;
        let mut batch = Batch::default();
        batch.set_vector(Target { document: "00000".into(), chunk: None }, vector("v", &components));
        let refused = life.store.commit(batch).expect_err("it cannot be stored").to_string();
        assert!(refused.contains("component 4") && refused.contains(said), "{refused}");
    }
    let mut batch = Batch::default();
    batch.set_vector(Target { document: "00000".into(), chunk: None }, vector("other", &[0.5, 0.5]));
    let refused = life.store.commit(batch).expect_err("its length is not one").to_string();
    assert!(refused.contains("not normalised"), "{refused}");
    let snapshot = life.store.snapshot().clone();
    let mut question = life.drawn();
    question[2] = f32::INFINITY;
    let refused = snapshot.search_vectors("v", &question, &VectorSearch::new(3));
    assert!(matches!(refused, Err(QueryError::Vector { .. })), "{refused:?}");
    // Edges and answers need cosines.
    let refused = life.store.build_edges("v", &EdgeRules::new(50_000, 2), &Quiet).map(|_| ());
    assert!(matches!(refused, Err(EdgeError::Query(QueryError::Metric { .. }))), "{refused:?}");
    let asked = Question { space: Some("v".into()), vector: Some(life.drawn()), ..Question::new("x") };
    let refused = snapshot.ask(&asked, Models::default()).map(|_| ());
    assert!(matches!(refused, Err(QueryError::Metric { .. })), "{refused:?}");
    let unnamed = Question::new("x");
    assert!(snapshot.ask(&unnamed, Models::default()).is_ok(), "a space without cosines is not asked by itself");
}

#[test]
fn edges_of_halves_and_codes_are_those_of_the_vectors_that_are_stored() {
    for element in Element::ALL {
        let edges = |kind: SpaceKind, rounded: bool| {
            let mut life = Life::new(kind);
            let mut batch = Batch::default();
            batch.space("v", kind);
            for name in 0..90 {
                let mut components = life.drawn();
                if rounded {
                    components = stored(SpaceKind { element, ..kind }, &components);
                }
                batch.put(document(&format!("{name:05}"), vec![vector("v", &components)]));
            }
            life.store.commit(batch).expect("the batch is sound");
            life.store.build_edges("v", &EdgeRules::new(80_000, 4), &Quiet).expect("edges can be built");
            let snapshot = life.store.snapshot();
            let told: Vec<_> = snapshot.stats().expect("it is read").edges.into_iter().collect();
            told.into_iter().map(|edges| (edges.threshold.to_bits(), edges.passed, edges.kept)).collect::<Vec<_>>()
        };
        let kind = SpaceKind { element, ..SpaceKind::default() };
        assert_eq!(edges(kind, false), edges(SpaceKind::default(), true), "{element:?}");
    }
}

#[test]
fn commands_make_spaces_of_every_kind_and_tell_them() {
    let folder = Folder::new();
    let store = folder.store();
    let lines: Vec<String> = (0..4).map(|row| format!("{{\"key\":\"d{row}\",\"text\":\"Text {row}.\"}}")).collect();
    let documents = folder.write("documents.jsonl", lines.join("\n"));
    let numbers: [f32; 8] = [0.0, 1.0, 3.0, 4.0, -2.0, 0.5, 1.0, 1.0];
    let components: Vec<u64> = numbers.iter().map(|number| u64::from(number.to_bits())).collect();
    let matrix = folder.write("v.npy", shaped("<f4", "4, 2", &components));
    let ids = folder.write("ids.txt", "d0\nd1\nd2\nd3");
    told(&["import", &store, "--documents", &documents, "--embedder", "none"]);
    let given = ["import", &store, "--vectors", &matrix, "--ids", &ids, "--space"];
    told(&[&given[..], &["far", "--metric", "l2", "--element", "f16"]].concat());
    told(&[&given[..], &["high", "--metric", "dot", "--element", "i8"]].concat());
    let spaces = told(&["stats", &store])["spaces"].clone();
    let kinds: Vec<(&str, &str)> = spaces
        .as_array()
        .expect("a list")
        .iter()
        .map(|space| (space["element"].as_str().expect("a name"), space["metric"].as_str().expect("a name")))
        .collect();
    assert_eq!(kinds, [("f16", "l2"), ("i8", "dot")]);
    let near = |space: &str| {
        let told = told(&["nearest", &store, "d3#0", "--space", space]);
        let scored = told["nearest"].as_array().expect("a list").iter();
        scored.map(|one| (one["key"].to_string(), one["score"].as_f64().expect("a number"))).collect::<Vec<_>>()
    };
    let key = |row: u32| format!("\"d{row}#0\"");
    assert_eq!(near("far"), [(key(0), 1.0), (key(2), 9.25), (key(1), 13.0)]);
    assert_eq!(near("high").iter().map(|one| one.0.clone()).collect::<Vec<_>>(), [key(1), key(0), key(2)]);
    // The vectors again are of the kind that the space has; another kind is refused.
    assert_eq!(told(&[&given[..], &["far"]].concat())["vectors"]["unchanged"], 4);
    let refused = Run::of(command().args(given).args(["far", "--element", "f32"]));
    assert!(refused.code != 0 && refused.err.contains("f16 compared by l2"), "{}", refused.err);
    let human = Run::of(command().args(["stats", &store]));
    assert!(human.out.contains("2 components as i8, compared by dot"), "{}", human.out);
}
