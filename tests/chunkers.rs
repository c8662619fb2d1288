//! Documents cut in every way that there is, from the options of the command to what the store holds.

use crate::command::command;
use crate::stores::Place;
use hedgerow::{Batch, ChunkStrategy, Chunking, Document, Part, PartKind, Pipeline, Quiet, Snapshot, Staged, Store};
use hedgerow_cli::embed::StaticTable;
use std::fs;
use tempfile::TempDir;

/// A guide in Markdown: two sections of two subjects each, and a table.
fn guide() -> String {
    let boats =
        "The ferry leaves the harbour at noon. The crew ties the boat to the pier. The captain watches the tide. ";
    let bread = "The baker kneads the dough at night. The oven bakes the bread until it is brown. The flour comes from the mill. ";
    let rows: Vec<String> = (1..40).map(|row| format!("| pier {row} | {} m |\n", row * 7)).collect();
    let rows = rows.concat();
    format!(
        "# Guide\n\n## Boats and bread\n\n{}{}\n\n## Piers\n\n| name | length |\n|---|---|\n{rows}\nThat is all.\n",
        boats.repeat(2),
        bread.repeat(2)
    )
}

fn staged(store: &Store, pipeline: Pipeline<'_>, document: Document) -> Staged {
    let mut batch = Batch::default();
    let staged = pipeline.stage(&store.snapshot(), vec![document], &mut batch, &Quiet).expect("no one cancels");
    store.commit(batch).expect("the batch is sound");
    staged
}

#[test]
fn a_document_is_cut_as_the_pipeline_says_and_the_same_again_is_no_change() {
    let table = StaticTable::default();
    let document = || Document::new("guide").title("Guide").text(guide());
    let mut seen = Vec::new();
    for strategy in [ChunkStrategy::Recursive, ChunkStrategy::Headings, ChunkStrategy::Semantic, ChunkStrategy::Tables]
    {
        let place = Place::new();
        let store = place.open();
        let chunking = Some(Chunking { strategy, size: 500, overlap: 0 });
        let pipeline = Pipeline { chunking, embedder: Some(&table), extractor: None };
        assert_eq!(staged(&store, pipeline, document()).staged, 1);
        assert_eq!(staged(&store, pipeline, document()).unchanged, 1, "{strategy:?}");
        let snapshot = store.snapshot();
        let found = snapshot.find_document("guide").expect("it can be read").expect("it is there");
        let chunk = |id| {
            let chunk = snapshot.chunk(id).expect("it is there");
            (chunk.heading().expect("it can be read").to_owned(), chunk.text().expect("it can be read"), chunk.kind())
        };
        let chunks: Vec<(String, String, &str)> = found.chunks().map(chunk).collect();
        match strategy {
            ChunkStrategy::Headings => assert_eq!(chunks[0].0, "Guide > Boats and bread"),
            ChunkStrategy::Semantic => {
                let of_both = |chunk: &(String, String, &str)| chunk.1.contains("captain") && chunk.1.contains("baker");
                assert!(!chunks.iter().any(of_both), "{chunks:?}");
            }
            ChunkStrategy::Tables => {
                let tables: Vec<&String> =
                    chunks.iter().filter(|chunk| chunk.2 == "table").map(|chunk| &chunk.1).collect();
                assert!(
                    tables.len() > 1 && tables.iter().all(|table| table.starts_with("| name | length |\n|---|---|\n"))
                );
            }
            ChunkStrategy::Recursive => assert!(chunks.iter().all(|chunk| chunk.0.is_empty() && chunk.2 == "text")),
        }
        seen.push(chunks);
    }
    seen.dedup();
    assert_eq!(seen.len(), 4, "two strategies cut the same");
}

#[test]
fn a_table_that_a_reader_tells_is_a_chunk_of_its_kind() {
    let place = Place::new();
    let store = place.open();
    let text = "Before it.\na,b\n1,2\nAfter it.";
    let part = |range, kind| Part { range, kind, heading: "T".into(), ..Part::default() };
    let parts = vec![part(0..11, PartKind::Text), part(11..19, PartKind::Table), part(19..28, PartKind::Text)];
    let pipeline = Pipeline { chunking: Some(Chunking::default()), ..Pipeline::default() };
    staged(&store, pipeline, Document { parts, ..Document::new("t").text(text) });
    let snapshot = store.snapshot();
    let document = snapshot.find_document("t").expect("it can be read").expect("it is there");
    let kinds: Vec<&str> = document.chunks().map(|id| snapshot.chunk(id).expect("it is there").kind()).collect();
    assert_eq!(kinds, ["text", "table", "text"]);
}

#[test]
fn cutting_by_meaning_without_an_embedder_says_so() {
    let place = Place::new();
    let chunking = Some(Chunking { strategy: ChunkStrategy::Semantic, ..Chunking::default() });
    let pipeline = Pipeline { chunking, ..Pipeline::default() };
    let rejected = staged(&place.open(), pipeline, Document::new("guide").text(guide())).rejected;
    assert!(rejected[0].reason.contains("needs an embedder"), "{rejected:?}");
}

#[test]
fn the_options_of_the_command_say_how_documents_are_cut() {
    let folder = TempDir::new().expect("there is room for a temporary folder");
    fs::write(folder.path().join("guide.txt"), guide()).expect("the file can be written");
    let run = |store: &str, options: &[&str]| {
        let mut command = command();
        command.current_dir(folder.path()).args(["ingest", store, "guide.txt"]).args(options);
        command.output().expect("the command starts")
    };
    let count = |store: &str, options: &[&str]| {
        let output = run(store, options);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let snapshot = Snapshot::open(folder.path().join(store)).expect("it can be opened");
        snapshot.statistics().expect("lengths can be read").chunks
    };
    let default = count("default", &[]);
    assert!(count("small", &["--chunk-size", "100", "--chunk-overlap", "0"]) > default);
    assert!(
        count("headings", &["--chunker", "headings"])
            < count("meaning", &["--chunker", "semantic", "--chunk-size", "300"])
    );
    let refused = run("none", &["--chunker", "semantic", "--embedder", "none"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--embedder none"));
    assert!(!folder.path().join("none").exists());
}
