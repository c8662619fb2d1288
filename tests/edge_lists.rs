//! Graphs that documents state as a whole: they are kept, merged, asked, rewritten and gone as relations are.

use crate::checks::image::{Image, environment};
use crate::command::{Folder, Run, command, told};
use crate::stores::{Place, entities, files, put, relations};
use hedgerow::{
    Batch, Description, Direction, EdgeKind, Env, ExpandOptions, Quiet, Snapshot, StagedDocument, StagedEdge,
    StagedEdgeList, StagedEnd, Store, canonical, salvage, verify,
};
use hedgerow_durability::{Disk, Numbers};
use hedgerow_format::section::SectionKind;
use rayon::ThreadPoolBuilder;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The edge lists of edges that are given by names, label and weight.
fn lists(edges: &[(&str, &str, &str, f32)]) -> Vec<StagedEdgeList> {
    let names = edges.iter().flat_map(|(subject, _, object, _)| [*subject, *object]);
    let nodes = names.map(|name| StagedEnd::new(name, "").expect("it is a name")).collect();
    let mut staged: BTreeMap<String, Vec<StagedEdge>> = BTreeMap::new();
    for ((_, label, _, weight), subject) in edges.iter().zip((0..).step_by(2)) {
        let edge = StagedEdge { subject, object: subject + 1, weight: *weight };
        staged.entry((*label).to_owned()).or_default().push(edge);
    }
    StagedEdgeList::of_graph(nodes, staged).expect("the graph is sound")
}

fn graph(key: &str, edges: &[(&str, &str, &str, f32)]) -> StagedDocument {
    StagedDocument { edge_lists: lists(edges), ..StagedDocument::textless(key, [1; 16]) }
}

fn commit(store: &Store, documents: Vec<StagedDocument>) {
    let mut batch = Batch::default();
    for document in documents {
        batch.put(document);
    }
    store.commit(batch).expect("the batch is sound");
}

/// Keys and hops that are reached along relations.
fn reached(snapshot: &Snapshot, from: &str, direction: Direction, hops: usize) -> Vec<(String, usize)> {
    let options = ExpandOptions { edges: vec![EdgeKind::Relations], direction, hops, ..ExpandOptions::default() };
    let seed = snapshot.find(from).expect("it is there");
    let found = snapshot.expand(&[seed], &options).expect("it can be walked");
    found.nodes.into_iter().map(|node| (node.key, node.hop)).collect()
}

fn problems(place: &Place) -> Vec<String> {
    verify(&Env::folder(&place.path()).expect("it is a folder"), &Quiet).expect("there is a store").problems
}

const ROADS: [(&str, &str, &str, f32); 5] = [
    ("Ely", "leads to", "Dover", 1.0),
    ("Dover", "leads to", "Bridge", 1.0),
    ("Dover", "leads to", "Dover", 1.0),
    ("Ely", "near", "Mill", 0.5),
    ("ely", "near", "Dover", 2.0),
];

const SAID: [&str; 5] = [
    r#"Dover leads to Bridge 1 ["roads"]"#,
    r#"Dover leads to Dover 1 ["roads"]"#,
    r#"Ely leads to Dover 1 ["roads"]"#,
    r#"Ely near Dover 2 ["roads"]"#,
    r#"Ely near Mill 0.5 ["roads"]"#,
];

#[test]
fn a_graph_is_kept_shown_and_walked_with_and_without_links_and_gone_with_its_document() {
    let place = Place::new();
    let store = place.open_unmerged();
    commit(&store, vec![graph("roads", &ROADS)]);
    for in_step in [false, true] {
        if in_step {
            store.refresh(&Quiet).expect("the store can be brought in step");
        }
        let snapshot = place.read();
        assert_eq!(entities(&snapshot), ["Bridge", "Dover", "Ely", "Mill"], "{in_step}");
        assert_eq!(relations(&snapshot), SAID, "{in_step}");
        let hops = |name: &str, hop| (format!("entity:{name}"), hop);
        assert_eq!(reached(&snapshot, "Ely", Direction::Out, 1), [hops("Ely", 0), hops("Dover", 1), hops("Mill", 1)]);
        assert_eq!(
            reached(&snapshot, "Bridge", Direction::In, 2),
            [hops("Bridge", 0), hops("Dover", 1), hops("Ely", 2)]
        );
        assert_eq!(reached(&snapshot, "Bridge", Direction::Out, 2), [hops("Bridge", 0)]);
        let found = snapshot.find("entity:dover").expect("it is there");
        let Description::Entity { entity, edges, .. } = snapshot.describe(found, 10).expect("it is there") else {
            panic!("an entity is described as one");
        };
        let lines: Vec<String> =
            edges.relations.iter().map(|line| format!("{} {}", line.subject, line.object)).collect();
        assert_eq!((entity.name.as_str(), entity.mentions), ("Dover", 0));
        assert_eq!(lines.len(), 5, "an edge to itself leads from it and to it: {lines:?}");
        assert_eq!(snapshot.stats().expect("it can be counted").relations, 5);
    }
    assert_eq!(problems(&place), Vec::<String>::new());
    let mut batch = Batch::default();
    batch.delete("roads");
    store.commit(batch).expect("the batch is sound");
    assert_eq!((entities(&place.read()), relations(&place.read())), (vec![], vec![]));
    store.refresh(&Quiet).expect("the store can be brought in step");
    assert_eq!((entities(&place.read()), relations(&place.read())), (vec![], vec![]));
    store.compact(&Quiet).expect("there is room");
    for (name, bytes) in files(&place.path()) {
        assert!(!bytes.windows(5).any(|five| five == b"Dover"), "{} speaks of what is gone", name.display());
    }
    assert_eq!(problems(&place), Vec::<String>::new());
}

#[test]
fn relations_of_text_and_of_graphs_are_one_with_the_sources_of_both() {
    let place = Place::new();
    let store = place.open();
    put(&store, &[("d0", "Alice owns Bridge.")]);
    commit(&store, vec![graph("g", &[("alice", "owns", "Bridge", 2.0), ("Zoe", "owns", "Bridge", 1.0)])]);
    store.refresh(&Quiet).expect("the store can be brought in step");
    let expected = [r#"Alice owns Bridge 3 ["d0#0", "g"]"#, r#"Zoe owns Bridge 1 ["g"]"#];
    assert_eq!(relations(&place.read()), expected);
    assert_eq!(place.read().stats().expect("it can be counted").relations, 3);
}

#[test]
fn compaction_keeps_graphs_and_any_history_has_the_content_of_a_fresh_store() {
    let (place, fresh) = (Place::new(), Place::new());
    let store = place.open_unmerged();
    put(&store, &[("d0", "Alice owns Bridge."), ("d1", "Carol met Alice.")]);
    commit(&store, vec![graph("gone", &[("Alice", "knows", "Zoe", 1.0)]), graph("roads", &ROADS[..2])]);
    let mut batch = Batch::default();
    batch.delete("gone");
    batch.put(StagedDocument { fingerprint: [2; 16], ..graph("roads", &ROADS) });
    store.commit(batch).expect("the batch is sound");
    commit(&store, vec![graph("later", &[("Zoe", "knows", "Alice", 0.25)])]);
    store.refresh(&Quiet).expect("the store can be brought in step");
    let before = (relations(&place.read()), entities(&place.read()), place.read().fingerprint().expect("it is whole"));
    store.compact(&Quiet).expect("there is room");
    let after = (relations(&place.read()), entities(&place.read()), place.read().fingerprint().expect("it is whole"));
    assert_eq!(before, after);
    assert_eq!(problems(&place), Vec::<String>::new());
    let other = fresh.open();
    commit(
        &other,
        vec![
            graph("later", &[("Zoe", "knows", "Alice", 0.25)]),
            StagedDocument { fingerprint: [2; 16], ..graph("roads", &ROADS) },
        ],
    );
    put(&other, &[("d1", "Carol met Alice."), ("d0", "Alice owns Bridge.")]);
    assert_eq!(fresh.read().fingerprint().expect("it is whole"), after.2);
    let copies = [&place, &fresh].map(|place| {
        let disk = Disk::default();
        canonical(&place.read(), Arc::new(disk.clone()), &Quiet).expect("what is whole can be copied");
        let state = disk.now();
        let segments = state.names().filter(|name| name.to_string().starts_with("segments"));
        segments.map(|name| state.bytes(&name).unwrap_or_default().to_vec()).collect::<Vec<_>>()
    });
    assert!(!copies[0].is_empty() && copies[0] == copies[1], "canonical copies differ");
}

#[test]
fn edges_that_are_there_twice_are_one_with_the_sum_of_their_weights_whatever_their_order() {
    let edges =
        [("p", "x", "q", 0.1), ("Q", "x", "p", 1.0), ("P", "x", "Q", 0.7), ("p", "x", "q", 1e-3), ("r", "y", "r", 1.0)];
    let made = lists(&edges);
    let names = |list: &StagedEdgeList| list.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
    assert_eq!(made.iter().map(|list| (list.predicate.as_str(), list.len())).collect::<Vec<_>>(), [("x", 2), ("y", 1)]);
    assert!(made[0].weights.contains(&0.801) && made[0].weights.contains(&1.0), "{:?}", made[0].weights);
    assert!(made[1].weights.is_empty(), "weights that are all 1 are not kept");
    assert!(names(&made[0]).iter().all(|name| ["P", "Q"].contains(&name.as_str())), "{:?}", names(&made[0]));
    made.iter().try_for_each(StagedEdgeList::check).expect("what is made can be written");
    let mut numbers = Numbers(5);
    for _ in 0..20 {
        let mut order: Vec<_> = edges.to_vec();
        (1..order.len()).for_each(|last| order.swap(last, numbers.below(last + 1)));
        assert_eq!(lists(&order), made);
    }
    let nodes = || vec![StagedEnd::new("p", "").expect("it is a name")];
    for (object, weight, reason) in [(1, 1.0, "there are 1"), (0, 0.0, "finite and above 0"), (0, f32::NAN, "finite")] {
        let edges = BTreeMap::from([("x".to_owned(), vec![StagedEdge { subject: 0, object, weight }])]);
        let error = StagedEdgeList::of_graph(nodes(), edges).expect_err("it is wrong");
        assert!(error.contains(reason), "{error}");
    }
    let huge = vec![StagedEdge { subject: 0, object: 0, weight: f32::MAX }; 2];
    StagedEdgeList::of_graph(nodes(), BTreeMap::from([("x".to_owned(), huge)])).expect_err("the sum is no weight");
}

#[test]
fn lists_that_were_made_by_hand_are_checked() {
    let sound = || lists(&ROADS).remove(1);
    let check = |change: &dyn Fn(&mut StagedEdgeList), reason: &str| {
        let mut list = sound();
        change(&mut list);
        let error = list.check().expect_err(reason);
        assert!(error.contains(reason), "{error}");
        let mut batch = Batch::default();
        batch.put(StagedDocument { edge_lists: vec![list], ..StagedDocument::textless("g", [0; 16]) });
        Place::new().open().commit(batch).expect_err(reason);
    };
    check(&|list| list.predicate.clear(), "no label");
    check(&|list| list.nodes.reverse(), "ascend by key");
    check(&|list| list.nodes[0].name = "Other".into(), "does not give its key");
    check(&|list| list.offsets[0] = 1, "offsets");
    check(&|list| list.offsets.truncate(1), "offsets");
    check(&|list| list.targets[1] = 9, "not there");
    check(&|list| list.targets.reverse(), "do not ascend");
    check(&|list| list.targets.truncate(1), "offsets");
    check(&|list| list.weights = vec![1.0; 2], "weights");
    check(&|list| list.weights = vec![f32::INFINITY, 1.0], "finite");
    check(&|list| list.weights.truncate(1), "weights");
    let mut batch = Batch::default();
    let edge_lists = vec![sound(), sound()];
    batch.put(StagedDocument { edge_lists, ..StagedDocument::textless("g", [0; 16]) });
    Place::new().open().commit(batch).expect_err("two lists have one label");
}

#[test]
fn one_thread_and_two_write_the_same_bytes() {
    let mut numbers = Numbers(9);
    let edges: Vec<(String, String, f32)> = (0..20_000)
        .map(|_| {
            (
                format!("n{}", numbers.below(900)),
                format!("n{}", numbers.below(900)),
                [0.1, 1.0, 2.5, 7.0][numbers.below(4)],
            )
        })
        .collect();
    let edges: Vec<(&str, &str, &str, f32)> =
        edges.iter().map(|(subject, object, weight)| (subject.as_str(), "x", object.as_str(), *weight)).collect();
    let written = [1, 2].map(|threads| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("there is room");
        pool.install(|| {
            let disk = Disk::default();
            let store = Store::open_or_create_in(Env::seeded(Arc::new(disk.clone()), 1)).expect("the disk is sound");
            commit(&store, vec![graph("g", &edges)]);
            store.refresh(&Quiet).expect("the disk is sound");
            drop(store);
            let state = disk.now();
            state
                .names()
                .map(|name| (name, state.bytes(&name).unwrap_or_default().to_vec()))
                .collect::<BTreeMap<_, _>>()
        })
    });
    assert!(written[0] == written[1], "the bytes differ");
}

fn npy(descr: &str, rows: &[u64]) -> Vec<u8> {
    shaped(descr, &format!("{}, 2", rows.len() / 2), rows)
}

pub fn shaped(descr: &str, shape: &str, numbers: &[u64]) -> Vec<u8> {
    let size = usize::from(descr.as_bytes()[2] - b'0');
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let length = u16::try_from(header.len()).expect("it is short").to_le_bytes();
    let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()[..size].to_vec()).collect();
    [b"\x93NUMPY\x01\0".as_slice(), &length, header.as_bytes(), &data].concat()
}

fn run(arguments: &[&str]) -> Run {
    Run::of(command().args(arguments))
}

#[test]
fn lines_between_tabs_are_edges_by_their_columns() {
    for (text, options, expected) in [
        ("# a comment\nP\tQ\nQ\tR\nP\tQ\n", &["--predicate", "x"][..], vec!["P x Q 2", "Q x R 1"]),
        ("P\tQ\t0.5\nQ\tR\t2\n", &["--predicate", "x"], vec!["P x Q 0.5", "Q x R 2"]),
        ("P\tx\tQ\nQ\ty\tR\n", &[], vec!["P x Q 1", "Q y R 1"]),
        ("P\tx\tQ\t3\r\n\nq\tx\tp\t4\r\n", &[], vec!["P x Q 3", "Q x P 4"]),
        ("P\t2\tQ\n", &["--columns", "spo"], vec!["P 2 Q 1"]),
    ] {
        let folder = Folder::new();
        let file = folder.write("edges.tsv", text);
        let said = told(&[&["import", &folder.store(), "--edges", &file], options].concat());
        assert_eq!(said["edges"]["added"], expected.len(), "{text:?}");
        let store = Snapshot::open(folder.store()).expect("it is there");
        let found: Vec<String> =
            relations(&store).iter().map(|line| line.split(" [").next().unwrap_or_default().to_owned()).collect();
        assert_eq!(found, expected, "{text:?}");
    }
}

#[test]
fn a_file_of_edges_is_imported_once_rejects_what_is_none_and_can_be_removed() {
    let folder = Folder::new();
    let store = folder.store();
    let file = folder.write("edges.tsv", "P\tx\tQ\nP\tQ\n---\tx\tQ\nQ\tx\tR\nP\tx\tQ\n");
    let first = run(&["import", &store, "--edges", &file, "--json"]);
    assert_eq!(first.code, 1, "{}", first.err);
    assert_eq!(first.json()["edges"], serde_json::json!({"added": 2, "merged": 1, "unchanged": 0}));
    let rejected = first.json()["rejected"].clone();
    assert_eq!((&rejected[0]["line"], &rejected[1]["line"]), (&2.into(), &3.into()));
    assert!(rejected[0]["reason"].as_str().is_some_and(|reason| reason.contains("3 columns")), "{rejected}");
    let key =
        serde_json::from_str::<serde_json::Value>(first.out.lines().next().expect("a batch")).expect("it is JSON");
    let key = key["last"].as_str().expect("it has a key").to_owned();
    assert!(key.starts_with("import:"), "{key}");
    let again = run(&["import", &store, "--edges", &file, "--json"]);
    assert_eq!(again.json()["edges"], serde_json::json!({"added": 0, "merged": 0, "unchanged": 3}));
    assert_eq!(again.json()["generation"], first.json()["generation"]);
    assert_eq!(told(&["rm", &store, &key])["removed"], 1);
    let snapshot = Snapshot::open(&store).expect("it is there");
    assert_eq!((entities(&snapshot), relations(&snapshot)), (vec![], vec![]));
}

#[test]
fn pairs_of_numbers_are_edges_between_numbers_or_names() {
    let folder = Folder::new();
    for descr in ["|u1", "<u2", "<u4", "<u8", "<i4", "<i8"] {
        let (store, file) = (folder.path(descr), folder.write("edges.npy", npy(descr, &[0, 7, 7, 100, 0, 7])));
        told(&["import", &store, "--edges", &file, "--predicate", "links"]);
        let found = relations(&Snapshot::open(&store).expect("it is there"));
        assert!(found[0].starts_with("0 links 7 2 [") && found[1].starts_with("7 links 100 1 ["), "{descr}: {found:?}");
    }
    let store = folder.store();
    let file = folder.write("edges.npy", npy("<u4", &[0, 1, 1, 2, 2, 0, 3, 0]));
    let names = folder.write("names.txt", "Ely\n\nDover\n");
    let told = run(&["import", &store, "--edges", &file, "--predicate", "links", "--names", &names, "--json"]);
    assert_eq!(told.code, 1, "{}", told.err);
    let reasons: Vec<String> =
        (0..3).map(|row| told.json()["rejected"][row]["reason"].as_str().unwrap_or_default().to_owned()).collect();
    assert!(reasons[0].contains("line 2 of the names") && reasons[2].contains("no name of node 3"), "{reasons:?}");
    let found = relations(&Snapshot::open(&store).expect("it is there"));
    assert!(found.len() == 1 && found[0].starts_with("Dover links Ely 1 ["), "{found:?}");
    let negative = folder.write("negative.npy", npy("<i4", &[0, 1, u64::from(u32::MAX), 1]));
    let told = run(&["import", &folder.path("other"), "--edges", &negative, "--predicate", "links", "--json"]);
    assert!(told.json()["rejected"][0]["reason"].as_str().is_some_and(|reason| reason.ends_with("found -1")));
}

#[test]
fn options_that_do_not_fit_the_file_are_wrong_usage() {
    let folder = Folder::new();
    let matrix = folder.write("edges.npy", npy("<u4", &[0, 1]));
    let lines = folder.write("edges.tsv", "P\tQ\n");
    let labelled = folder.write("labelled.tsv", "P\tx\tQ\n");
    let wide = folder.write("wide.npy", shaped("<u4", "1, 4", &[0; 4]));
    let real = folder.write("real.npy", shaped("<f4", "1, 2", &[0; 2]));
    let short = folder.write("short.npy", shaped("<u4", "1152921504606846976, 2", &[0; 2]));
    for (options, reason) in [
        (vec![matrix.as_str()], "--predicate"),
        (vec![&lines], "--predicate"),
        (vec![&matrix, "--predicate", "x", "--columns", "so"], "--columns is for lines"),
        (vec![&lines, "--predicate", "x", "--names", &lines], "--names is for a .npy file"),
        (vec![&labelled, "--predicate", "x", "--columns", "spo"], "a label of their own"),
        (vec![&lines, "--predicate", " "], "--predicate has 1 to"),
        (vec![&wide, "--predicate", "x"], "expected 2 columns, found 4"),
        (vec![&real, "--predicate", "x"], "expected integers"),
        (vec![&short, "--predicate", "x"], "it was cut off"),
    ] {
        let told = run(&[&["import", &folder.store(), "--edges"], options.as_slice()].concat());
        assert!(told.code == 2 && told.err.contains(reason), "{options:?}: {} {}", told.code, told.err);
    }
}

#[test]
fn the_same_file_read_in_another_way_takes_the_place_of_what_it_was() {
    let folder = Folder::new();
    let (store, file) = (folder.store(), folder.write("edges.npy", npy("<u4", &[0, 1])));
    told(&["import", &store, "--edges", &file, "--predicate", "x"]);
    assert_eq!(told(&["import", &store, "--edges", &file, "--predicate", "y"])["edges"]["added"], 1);
    let found = relations(&Snapshot::open(&store).expect("it is there"));
    assert!(found.len() == 1 && found[0].starts_with("0 y 1"), "{found:?}");
}

#[test]
fn a_list_that_is_damaged_is_saved_edge_by_edge() {
    let place = Place::new();
    let edges: Vec<(String, String)> =
        (0..60_000).map(|row| (format!("n{}", row % 300), format!("n{}", row / 300))).collect();
    let edges: Vec<(&str, &str, &str, f32)> =
        edges.iter().map(|(subject, object)| (subject.as_str(), "x", object.as_str(), 1.0)).collect();
    commit(&place.open_unmerged(), vec![graph("g", &edges)]);
    let segment = std::fs::read_dir(place.path().join("segments")).expect("it is there").next().expect("one segment");
    let path = segment.expect("a file").path();
    let mut bytes = std::fs::read(&path).expect("it can be read");
    // The targets are the last and by far the longest section: a block in the middle of them.
    let place_of_damage = bytes.len() / 2;
    bytes[place_of_damage] ^= 1;
    std::fs::write(&path, &bytes).expect("there is room");
    let saved = Place::new();
    let env = |place: &Place| Env::folder(&place.path()).expect("it is a folder");
    let (store, found) = salvage(&env(&place), env(&saved), &Quiet).expect("something is left");
    drop(store);
    let lost = found.lost.iter().find(|lost| lost.what == "edges").expect("edges are lost");
    let lost: u64 = lost.reason.split(' ').next().expect("a number").parse().expect("a number");
    let kept = saved.read().stats().expect("it can be counted").relations;
    assert_eq!(kept + lost, 60_000);
    assert!((1..=65_536 / 4).contains(&lost), "{lost} edges are lost with one block");
    assert_eq!(problems(&saved), Vec::<String>::new());
}

/// Puts numbers into a section of the first segment that has edge lists; gives the disk.
fn edited(kind: SectionKind, words: &[usize], value: u32) -> Option<Disk> {
    let mut image = Image::settled().clone();
    let has_lists = |kind: SectionKind| kind == SectionKind::EdgeLists;
    let stored = image.files.iter_mut().find(|stored| stored.sections.iter().any(|(kind, _)| has_lists(*kind)));
    let sections = &mut stored.expect("one has lists").sections;
    let (_, content) = sections.iter_mut().find(|(known, _)| *known == kind).expect("it is there");
    for word in words {
        content.get_mut(word * 4..word * 4 + 4)?.copy_from_slice(&value.to_le_bytes());
    }
    Some(image.disk(|_| ()))
}

#[test]
fn every_invariant_of_edge_lists_is_checked_by_its_number() {
    let not_a_number = f32::NAN.to_bits();
    for (kind, word, value, rule) in [
        (SectionKind::EdgeLists, 0, 999, "S-LST-1"),
        (SectionKind::EdgeLists, 2, 0, "S-LST-1"),
        (SectionKind::EdgeLists, 3, 1, "S-LST-2"),
        (SectionKind::EdgeLists, 4, u32::MAX, "S-LST-2"),
        (SectionKind::EdgeLists, 5, 1, "S-LST-2"),
        (SectionKind::EdgeLists, 7, 1, "S-LST-4"),
        (SectionKind::EdgeLists, 7, u32::MAX, "S-LST-2"),
        (SectionKind::EdgeLists, 8, 0, "S-LST-2"),
        (SectionKind::ListNodes, 0, u32::MAX, "S-LST-3"),
        (SectionKind::ListNodes, 1, 0, "S-LST-3"),
        (SectionKind::ListOffsets, 0, 1, "S-LST-4"),
        (SectionKind::ListOffsets, 1, u32::MAX, "S-LST-4"),
        (SectionKind::ListTargets, 0, u32::MAX, "S-LST-5"),
        (SectionKind::ListWeights, 0, not_a_number, "S-LST-7"),
        (SectionKind::ListWeights, 1, 0, "S-LST-7"),
    ] {
        let found = told_of(&edited(kind, &[word], value).expect("there is such a number"));
        assert!(found.contains(rule), "{kind:?} {word} {value}: {found}");
    }
    let ones = edited(SectionKind::ListWeights, &[0, 1], 1_f32.to_bits()).expect("there are two weights");
    assert!(told_of(&ones).contains("S-LST-7"), "weights that are all 1 are not kept");
    // Which node has but one edge follows from the order of keys.
    let places = (0..).flat_map(|word| (0..4).map(move |node| (word, node)));
    let moved = places.map_while(|(word, node)| edited(SectionKind::ListTargets, &[word], node));
    assert!(moved.map(|disk| told_of(&disk)).any(|found| found.contains("S-LST-6")), "a node may have no edge");
}

/// What `verify` says, in one text.
fn told_of(disk: &Disk) -> String {
    verify(&environment(disk, 1), &Quiet).expect("there is a store").problems.join("\n")
}

#[test]
fn no_number_of_an_edge_list_makes_a_reader_fail() {
    let kinds = [
        SectionKind::EdgeLists,
        SectionKind::ListNodes,
        SectionKind::ListOffsets,
        SectionKind::ListTargets,
        SectionKind::ListWeights,
    ];
    let mut seen = 0;
    for kind in kinds {
        for (word, value) in (0..).flat_map(|word| [0, 1, 2, 7, u32::MAX / 4, u32::MAX].map(|value| (word, value))) {
            let Some(disk) = edited(kind, &[word], value) else { break };
            seen += 1;
            let problems = told_of(&disk);
            // Believed without a look at its invariants, it gives answers or errors.
            let Ok(snapshot) = Snapshot::open_in(&disk) else { continue };
            let read = [
                snapshot.stats().map(|_| ()),
                snapshot.list_relations(100).map(|_| ()),
                snapshot.list_entities(100).map(|_| ()),
                snapshot.find("Alice").and_then(|node| snapshot.describe(node, 10)).map(|_| ()),
                snapshot
                    .find("Quay")
                    .and_then(|node| snapshot.expand(&[node], &ExpandOptions { hops: 3, ..ExpandOptions::default() }))
                    .map(|_| ()),
            ];
            assert!(!problems.is_empty() || read.iter().all(Result::is_ok), "{kind:?} {word} {value}: {read:?}");
            let saved = salvage(&environment(&disk, 1), environment(&Disk::default(), 2), &Quiet).expect("it is there");
            assert!(saved.0.snapshot().stats().is_ok(), "{kind:?} {word} {value}");
        }
    }
    assert!(seen > 200, "{seen} edits were tried");
}
