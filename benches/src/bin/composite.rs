//! How long edges from several signals take: `composite PASSAGES.jsonl [ROWS]`, on the first ROWS (20,000) passages.
//!
//! Dense signals are the vectors of texts and of titles by the built-in table; sparse ones are the words with a capital, as
//! entities would be, and all words of the text, by their rarity. Prints seconds, threshold, pairs that passed and edges.

use hedgerow::composite::{Bar, Combination, CompositeRules, Ends, Relation, build};
use hedgerow::signals::{Dense, Overlap, SetsBuilder, Signal, Weighing};
use hedgerow::{Embed, Quiet, normalise};
use hedgerow_benches::{passages_of, timed};
use hedgerow_cli::embed::StaticTable;
use std::path::Path;

/// A case: its name, its signals, how they are combined, and how many of the nearest count.
type Case<'c> = (&'c str, &'c [&'c dyn Signal], Combination, Option<u32>);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [passages, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: composite PASSAGES.jsonl [ROWS]");
        std::process::exit(2);
    };
    let rows = rest.first().map_or(20_000, |rows| rows.parse().expect("ROWS is a number"));
    let mut passages = passages_of(Path::new(passages));
    passages.truncate(rows);
    let texts: Vec<&str> = passages.iter().map(|passage| passage.text.as_str()).collect();
    let titles: Vec<&str> = passages.iter().map(|passage| passage.title.as_str()).collect();
    let (contents, titles) = (vectors(&texts), vectors(&titles));
    let (contents, titles) = (Dense::new(&contents.0, contents.1), Dense::new(&titles.0, titles.1));
    let (names, all) = (overlap(&texts, true), overlap(&texts, false));
    println!("{} rows, {} threads", texts.len(), rayon_threads());
    let ranks: Vec<u32> = (0..u32::try_from(texts.len()).expect("rows")).collect();
    let agree = |signals: usize| Combination::Agree(vec![Bar::default(); signals]);
    let weighted = |weights: &[f64]| Combination::Weighted { weights: weights.to_vec(), bar: Bar::default() };
    let measured: [Case<'_>; 8] = [
        ("contents", &[&contents], agree(1), None),
        ("names", &[&names], agree(1), None),
        ("words", &[&all], agree(1), None),
        ("contents and names", &[&contents, &names], agree(2), None),
        ("contents and titles", &[&contents, &titles], agree(2), None),
        ("contents + names", &[&contents, &names], weighted(&[0.65, 0.35]), None),
        ("contents + names, 50 nearest", &[&contents, &names], weighted(&[0.65, 0.35]), Some(50)),
        ("titles + names + words", &[&titles, &names, &all], weighted(&[0.4, 0.35, 0.25]), None),
    ];
    for (name, signals, combination, nearest) in measured {
        let rules = CompositeRules { combination, nearest, top_m: 16, ends: Ends::Either };
        let (seconds, built) =
            timed(|| build(signals, &ranks, Relation::Within, &rules, &Quiet).expect("nothing cancels"));
        let report = built.edges.report;
        println!("{name}: {seconds:.2} s, {:?}, {} passed, {} edges", built.thresholds, report.passed, report.kept);
    }
}

fn rayon_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A matrix of unit vectors, zero where a text has none, and its columns.
fn vectors(texts: &[&str]) -> (Vec<f32>, usize) {
    let table = StaticTable::default();
    let mut matrix = Vec::new();
    for vector in table.embed(texts).expect("the table embeds") {
        let mut vector = vector.unwrap_or_else(|| vec![0.0; table.dimensions()]);
        // A row of zeros stays one.
        _ = normalise(&mut vector);
        matrix.extend(vector);
    }
    (matrix, table.dimensions())
}

fn overlap(texts: &[&str], names_only: bool) -> Overlap {
    let mut sets = SetsBuilder::default();
    for text in texts {
        if names_only {
            sets.push(text.split_whitespace().filter(|word| word.starts_with(char::is_uppercase)));
        } else {
            sets.push_words(text);
        }
    }
    Overlap::new(sets.finish(), Weighing::Rarity)
}
