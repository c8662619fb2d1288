//! What it costs to bring the links of a store in step: `refresh STORE PASSAGES.jsonl [ROUNDS]`, on a copy of a store
//! that holds these passages.
//!
//! In turns, ROUNDS (9) of each: one document is replaced by another passage under its title; one document is put in under
//! a title that is new; one in a hundred documents is new. Each is committed first, and only the refresh is timed. Then the
//! projection is taken away, and made of all text. Medians, in milliseconds.

use hedgerow::{Batch, Document, Quiet, Store};
use hedgerow_benches::{median, passages_of, pipeline, timed};
use hedgerow_cli::embed::StaticTable;
use hedgerow_cli::extract::Patterns;
use std::fs;
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, passages, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: refresh STORE PASSAGES.jsonl [ROUNDS]");
        std::process::exit(2);
    };
    let rounds = rest.first().map_or(9, |rounds| rounds.parse().expect("ROUNDS is a number"));
    let (path, passages) = (Path::new(path), passages_of(Path::new(passages)));
    let hundredth = passages.len() / 100;
    let mut times: [Vec<f64>; 4] = Default::default();
    let store = Store::open(path).expect("a store");
    store.refresh(&Quiet).expect("links");
    for round in 0..rounds {
        let one = &passages[(round * 7919 + 13) % passages.len()];
        let other = &passages[(round * 104_729 + 17) % passages.len()];
        let replaced = Document::new(one.key.clone()).title(one.title.clone()).text(other.text.clone());
        times[0].push(refreshed(&store, vec![replaced]));
        let title = format!("{} {}", one.title, other.title);
        let added = Document::new(format!("added-{round}")).title(title).text(format!("{} {}", one.text, other.text));
        times[1].push(refreshed(&store, vec![added]));
        let many = (0..hundredth).map(|number| {
            let [one, other] = [7, 13].map(|step| &passages[(round * 997 + number * step + number) % passages.len()]);
            let title = format!("{} and {}", one.title, other.title);
            Document::new(format!("many-{round}-{number}")).title(title).text(other.text.clone())
        });
        times[2].push(refreshed(&store, many.collect()));
    }
    drop(store);
    for _ in 0..3 {
        for file in
            fs::read_dir(path.join("projections")).expect("projections").map(|file| file.expect("a file").path())
        {
            fs::remove_file(file).expect("it can be removed");
        }
        let store = Store::open(path).expect("a store");
        times[3].push(timed(|| store.refresh(&Quiet).expect("links")).0 * 1e3);
    }
    for (what, times) in ["one replaced", "one new", "1 % new", "all"].into_iter().zip(times) {
        println!("{what:>12}: {:.1}  {times:.1?}", median(times.clone()));
    }
}

/// Commits documents and gives the milliseconds that the refresh takes.
fn refreshed(store: &Store, documents: Vec<Document>) -> f64 {
    let (table, patterns) = (StaticTable::default(), Patterns);
    let mut batch = Batch::default();
    pipeline(&table, &patterns).stage(&store.snapshot(), documents, &mut batch, &Quiet).expect("staged");
    store.commit(batch).expect("a commit");
    timed(|| store.refresh(&Quiet).expect("links")).0 * 1e3
}
