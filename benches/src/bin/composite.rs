//! How long edges from several signals take: `composite PASSAGES.jsonl [ROWS]`, on the first ROWS (20,000) passages.
//!
//! A store in a temporary folder gets one chunk a passage, with the vector of its text by the built-in table and that of its title
//! in a space of its own, and the words with a capital as entities. Prints seconds, thresholds, pairs that passed and edges.

use hedgerow::{
    Batch, EdgeRules, Embed, Quiet, Signal, SignalKind, StagedChunk, StagedDocument, StagedEntity, StagedExtraction,
    StagedVector, Store, normalise,
};
use hedgerow_benches::{passages_of, timed};
use hedgerow_cli::embed::StaticTable;
use std::collections::BTreeSet;
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [passages, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: composite PASSAGES.jsonl [ROWS]");
        std::process::exit(2);
    };
    let rows = rest.first().map_or(20_000, |rows| rows.parse().expect("ROWS is a number"));
    let mut passages = passages_of(Path::new(passages));
    passages.truncate(rows);
    let folder = std::env::temp_dir().join(format!("hedgerow-composite-{}", std::process::id()));
    let store = Store::open_or_create(&folder).expect("a store can be made");
    let texts: Vec<(&str, &str)> =
        passages.iter().map(|passage| (passage.title.as_str(), passage.text.as_str())).collect();
    fill(&store, &texts);
    store.refresh(&Quiet).expect("links can be made");
    println!("{} rows, {} threads", texts.len(), std::thread::available_parallelism().map_or(1, usize::from));
    let titles = || SignalKind::Vectors("titles".into());
    measure(&store, "contents alone", &EdgeRules::default());
    for (name, signals, weighted, nearest) in [
        ("contents", vec![(SignalKind::Content, 1000)], false, None),
        ("names", vec![(SignalKind::RareEntities, 1000)], false, None),
        ("words", vec![(SignalKind::Words, 1000)], false, None),
        ("contents and names", vec![(SignalKind::Content, 1000), (SignalKind::RareEntities, 1000)], false, None),
        ("contents and titles", vec![(SignalKind::Content, 1000), (titles(), 1000)], false, None),
        ("contents + names", vec![(SignalKind::Content, 650), (SignalKind::RareEntities, 350)], true, None),
        ("contents + names, 50 nearest", vec![(SignalKind::Content, 650), (SignalKind::Entities, 350)], true, Some(50)),
        (
            "titles + names + words",
            vec![(titles(), 400), (SignalKind::RareEntities, 350), (SignalKind::Words, 250)],
            true,
            None,
        ),
    ] {
        let signal = |(what, weight)| Signal { what, percentile: 95_000, weight };
        let signals = signals.into_iter().map(signal).collect();
        measure(&store, name, &EdgeRules { signals, weighted, nearest, ..EdgeRules::default() });
    }
    drop(store);
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
}

fn measure(store: &Store, name: &str, rules: &EdgeRules) {
    let (seconds, built) = timed(|| store.build_edges("texts", rules, &Quiet).expect("edges can be built"));
    for kind in built {
        let report = kind.report;
        let thresholds = (report.threshold, kind.thresholds);
        println!("{name}: {seconds:.2} s, {thresholds:?}, {} passed, {} edges", report.passed, report.kept);
    }
}

/// Puts a document of one chunk for each title and text.
fn fill(store: &Store, texts: &[(&str, &str)]) {
    let table = StaticTable::default();
    for (part, texts) in texts.chunks(1000).enumerate() {
        let of = |side: Vec<&str>| table.embed(&side).expect("the table embeds");
        let contents = of(texts.iter().map(|text| text.1).collect());
        let titles = of(texts.iter().map(|text| text.0).collect());
        let mut batch = Batch::default();
        for (row, ((title, text), (content, of_title))) in
            texts.iter().zip(contents.into_iter().zip(titles)).enumerate()
        {
            let vectors = [("texts", content), ("titles", of_title)];
            let vectors = vectors.into_iter().filter_map(|(space, vector)| vector_in(space, vector?));
            let names = text.split_whitespace().filter(|word| word.starts_with(char::is_uppercase));
            // Of one spelling each: in lower case, letters and digits alone, no articles.
            let names: BTreeSet<String> =
                names.map(spelt).filter(|name| name != "the" && name != "a" && name != "an").collect();
            let entities = names.iter().flat_map(|name| StagedEntity::new(name, "name")).collect();
            let (extractor, model) = ("capitals".into(), "none".into());
            let extraction = StagedExtraction { extractor, model, entities, relations: Vec::new() };
            let range = 0..u32::try_from(text.len()).expect("a passage is short");
            let (vectors, extractions) = (vectors.collect(), vec![extraction]);
            let chunk = StagedChunk { range, vectors, extractions, ..StagedChunk::default() };
            let (name, title, text) = (format!("{part}-{row}"), (*title).to_owned(), (*text).to_owned());
            batch.put(StagedDocument { name, title, text, chunks: vec![chunk], ..StagedDocument::default() });
        }
        store.commit(batch).expect("the batch is sound");
    }
}

/// A name by its ASCII letters and digits.
fn spelt(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

/// A vector as a unit vector of a space, if it has a direction.
fn vector_in(space: &str, mut components: Vec<f32>) -> Option<StagedVector> {
    normalise(&mut components).ok()?;
    Some(StagedVector { space: space.into(), model: "static".into(), components })
}
