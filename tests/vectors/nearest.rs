//! The command `nearest`: by a chunk, by a text, filtered, and what does not fit.

use crate::command::{Folder, Run, command, told};
use serde_json::Value;

fn filled() -> Folder {
    let folder = Folder::new();
    let lines = [
        r#"{"key":"a","text":"The stone bridge of Dover is old.","metadata":{"year":1900}}"#,
        r#"{"key":"b","text":"An old bridge of stone stands in Dover.","metadata":{"year":1950}}"#,
        r#"{"key":"c","text":"Violins are tuned in fifths.","metadata":{"year":2000}}"#,
    ];
    let file = folder.write("documents.jsonl", lines.join("\n"));
    told(&["import", &folder.store(), "--documents", &file]);
    folder
}

fn keys(answer: &Value) -> Vec<&str> {
    answer["nearest"].as_array().expect("a list").iter().filter_map(|found| found["key"].as_str()).collect()
}

#[test]
fn nearest_lists_what_is_like_a_chunk_or_a_text() {
    let folder = filled();
    let store = folder.store();
    let near = told(&["nearest", &store, "a#0"]);
    assert_eq!((keys(&near), &near["space"]), (vec!["b#0", "c#0"], &Value::from("static")));
    for more in [&["--recall", "exact"] as &[&str], &["--recall", "0.95"], &["--beam", "3"]] {
        assert_eq!(keys(&told(&[&["nearest", &store, "a#0"], more].concat())), ["b#0", "c#0"]);
    }
    assert_eq!(keys(&told(&["nearest", &store, "--text", "tuning a violin", "--count", "1"])), ["c#0"]);
    let filter = "not metadata.year < 1960";
    assert_eq!(keys(&told(&["nearest", &store, "a#0", "--filter", filter])), ["c#0"]);
    let human = Run::of(command().args(["nearest", &store, "a#0", "--count", "1"]));
    assert!(human.code == 0 && human.out.contains("b#0") && !human.out.contains("c#0"), "{}", human.out);
}

#[test]
fn nearest_says_what_does_not_fit() {
    let folder = filled();
    let store = folder.store();
    for (given, said) in [
        (&["z#0"] as &[&str], "z#0"),
        (&["a#0", "--space", "other"], "has no vector in the space other"),
        (&["--text", "x", "--embedder", "none"], "expected an --embedder"),
        (&["--text", "x", "--space", "other"], "other"),
        (&["a#0", "--filter", "nonsense"], "nonsense"),
        (&[], "<KEY>"),
    ] {
        let run = Run::of(command().args(["nearest", &store]).args(given));
        assert!(run.code != 0 && run.err.contains(said), "{given:?}: {}", run.err);
    }
}
