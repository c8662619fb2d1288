//! Questions about the graph as a whole as commands: their JSON, what they write for other programs, and their ends.

use crate::command::{Folder, Run, command, told};
use serde_json::{Value, json};

const ROADS: &str = "Ely\tleads to\tDover\t1\nDover\tleads to\tBridge\t1\nEly\tnear\tMill\t0.5\nMill\tnear\tBridge\t4\n\
                     Fay\tknows\tBo \"B\" Li\\n\t0.1\n";

/// A store with the roads.
fn roads() -> (Folder, String) {
    let folder = Folder::new();
    let file = folder.write("roads.tsv", ROADS);
    let store = folder.store();
    told(&["import", &store, "--edges", &file, "--embedder", "none"]);
    (folder, store)
}

fn run(arguments: &[&str]) -> Run {
    Run::of(command().args(arguments))
}

#[test]
fn commands_about_the_graph_have_the_json_that_the_reference_says() {
    let (_folder, store) = roads();
    let components = told(&["components", &store]);
    assert_eq!(
        (&components["entities"], &components["components"], &components["alone"]),
        (&6.into(), &2.into(), &0.into())
    );
    assert_eq!(components["largest"][0]["size"], 4);
    let ranks = told(&["pagerank", &store, "--seed", "ely", "--limit", "2"]);
    assert_eq!((&ranks["nodes"], &ranks["ranks"][0]["key"]), (&6.into(), &"entity:Ely".into()));
    assert_eq!(ranks["ranks"].as_array().map(Vec::len), Some(2));
    let pushed = told(&["pagerank", &store, "--seed", "ely", "--chunks", "--residual", "1e-4"]);
    assert!(pushed["iterations"].is_null() && pushed["residual"].as_f64().is_some_and(|residual| residual < 0.1));
    let path = told(&["path", &store, "Ely", "entity:bridge"]);
    assert_eq!((&path["paths"][0]["cost"], &path["complete"]), (&2.0.into(), &true.into()));
    assert_eq!(path["paths"][0]["edges"].as_array().map(Vec::len), Some(2));
    let weighted = told(&["path", &store, "Ely", "Bridge", "-k", "9", "--weighted"]);
    assert_eq!(weighted["paths"].as_array().map(Vec::len), Some(2));
    assert_eq!(weighted["paths"][0]["edges"][0]["to"], "entity:Dover");
    let neighbours = told(&["neighbours", &store, "Bridge"]);
    assert_eq!((&neighbours["count"], &neighbours["neighbours"][0]["entity"]), (&2.into(), &"Mill".into()));
    let common = told(&["neighbours", &store, "Ely", "Bridge"]);
    assert_eq!((&common["count"], common["neighbours"][0]["labels"].is_null()), (&2.into(), true));
    let hubs = told(&["hubs", &store, "--limit", "1"]);
    assert_eq!((&hubs["max"], &hubs["hubs"].as_array().map(Vec::len)), (&2.into(), &Some(1)));
    let between = told(&["hubs", &store, "--by", "betweenness"]);
    assert_eq!((&between["sources"], &between["hubs"][0]["score"]), (&6.into(), &0.5.into()));
    let selected = told(&["select", &store, "near:1:Ely \\ Mill"]);
    assert_eq!(selected["count"], 2);
}

#[test]
fn a_graph_that_is_written_as_edges_is_read_back_as_it_was() {
    let (folder, store) = roads();
    let written = run(&["graph", &store]);
    assert_eq!(written.code, 0, "{}", written.err);
    let file = folder.write("again.tsv", &written.out);
    let again = folder.path("again");
    told(&["import", &again, "--edges", &file, "--embedder", "none"]);
    assert_eq!(run(&["graph", &again]).out, written.out);
    let told_relations = |store: &str| told(&["ls", store, "relations"]);
    let without = |mut lines: Value| {
        lines.as_array_mut().into_iter().flatten().for_each(|line| line["evidence"] = Value::Null);
        lines
    };
    assert_eq!(without(told_relations(&store)), without(told_relations(&again)));
    let object = told(&["graph", &store]);
    assert_eq!(object["nodes"].as_array().map(Vec::len), Some(6));
    assert_eq!(object["links"].as_array().map(Vec::len), Some(5));
    assert!(object["links"].as_array().into_iter().flatten().any(|link| link["weight"] == 0.1));
    assert_eq!(told(&["graph", &store, "--limit", "0"])["links"].as_array().map(Vec::len), Some(0));
    let dot = run(&["graph", &store, "--format", "dot"]).out;
    assert!(dot.starts_with("digraph {\n") && dot.ends_with("}\n"), "{dot}");
    assert!(dot.contains(r#""Fay" -> "Bo \"B\" Li\\n" [label="knows", weight="0.1"];"#), "{dot}");
}

#[test]
fn commands_about_the_graph_end_as_others_do_at_limits_and_at_what_is_not_there() {
    let folder = Folder::new();
    let line = |node: u32| format!("node {node}\tnext\tnode {}\n", node + 1);
    let lines = (0..3000).map(line).collect::<Vec<_>>().concat();
    let file = folder.write("chain.tsv", lines);
    let store = folder.store();
    told(&["import", &store, "--edges", &file, "--embedder", "none"]);
    let commands: [&[&str]; 8] = [
        &["components", &store],
        &["pagerank", &store, "--chunks"],
        &["path", &store, "node 1", "node 9"],
        &["neighbours", &store, "node 1"],
        &["hubs", &store],
        &["select", &store, "all"],
        &["graph", &store],
        &["graph", &store, "--joined"],
    ];
    for arguments in commands {
        let late = run(&[arguments, &["--timeout", "0"]].concat());
        assert_eq!(late.code, 7, "{arguments:?}: {}", late.err);
    }
    let large = run(&["hubs", &store, "--by", "betweenness", "--memory", "1"]);
    assert_eq!(large.code, 7, "{}", large.err);
    assert_eq!(run(&["path", &store, "node 1", "nobody"]).code, 3);
    assert_eq!(run(&["neighbours", &store, "nobody"]).code, 3);
    assert_eq!(run(&["pagerank", &store, "--seed", "chunk:a#0"]).code, 3);
    for arguments in [
        ["select", &store, "all |"].as_slice(),
        &["pagerank", &store, "--only", "chunks"],
        &["pagerank", &store, "--damping", "1"],
        &["hubs", &store, "--sources", "5"],
        &["graph", &store, "--json", "--format", "dot"],
        &["graph", &store, "--joined", "--limit", "5"],
    ] {
        assert_eq!(run(arguments).code, 2, "{arguments:?}");
    }
    let gave_up = told(&["path", &store, "node 1", "node 900", "--visits", "10"]);
    assert_eq!((&gave_up["complete"], &gave_up["paths"].as_array().map(Vec::len)), (&false.into(), &Some(0)));
}

#[test]
fn what_communities_are_found_in_is_written_pair_by_pair_with_its_weight() {
    let folder = Folder::new();
    let texts = [
        "Alice Marsh met Bruno Field at the harbour.",
        "Bruno Field met Carla Hill, and Alice Marsh came too.",
        "Carla Hill met Bruno Field.",
    ];
    let line = |(key, text): (usize, &&str)| json!({"key": key.to_string(), "text": text}).to_string() + "\n";
    let documents = folder.write("texts.jsonl", texts.iter().enumerate().map(line).collect::<String>());
    let triple =
        json!({"document": "0", "subject": "Dora", "predicate": "knows", "object": "Alice Marsh", "weight": 2.5});
    let triples = folder.write("triples.jsonl", triple.to_string() + "\n");
    let store = folder.store();
    told(&["import", &store, "--documents", &documents, "--triples", &triples]);
    let written = run(&["graph", &store, "--joined"]);
    assert_eq!(written.code, 0, "{}", written.err);
    let mut lines: Vec<&str> = written.out.lines().collect();
    lines.sort_unstable();
    // One of two chunks with both weighs 1, as there are two; the other a half, as there are three.
    let mut pairs = vec![("Alice Marsh", "Bruno Field", "1.5"), ("Alice Marsh", "Carla Hill", "0.5")];
    pairs.extend([("Bruno Field", "Carla Hill", "1.5"), ("Alice Marsh", "Dora", "2.5")]);
    let either = |(one, other, weight): &(&str, &str, &str)| {
        [(one, other), (other, one)].map(|(one, other)| format!("{one}\tjoined\t{other}\t{weight}"))
    };
    assert_eq!(lines.len(), pairs.len(), "{lines:?}");
    for pair in &pairs {
        let either = either(pair);
        assert!(lines.iter().any(|line| either.iter().any(|pair| pair == line)), "{pair:?}: {lines:?}");
    }
    let object = told(&["graph", &store, "--joined"]);
    assert_eq!((&object["directed"], object["nodes"].as_array().map(Vec::len)), (&json!(false), Some(4)));
    let dot = run(&["graph", &store, "--joined", "--format", "dot"]).out;
    assert!(dot.starts_with("graph {\n") && dot.contains(" -- "), "{dot}");
    // Where communities are found by relations alone, these alone join.
    told(&["communities", &store, "--build", "--relations-only"]);
    assert_eq!(run(&["graph", &store, "--joined"]).out.lines().count(), 1);
}
