//! Ranks of nodes that walks from some are at (`PageRank`, personalised), over the entities and chunks of a store: `pagerank STORE [RESIDUAL]`.
//!
//! Asks for the twenty best nodes from three entities, 200 times, of those that chunks mention most every tenth: pushed
//! until no more than RESIDUAL (1e-4) stays for each edge of a node. Prints JSON: milliseconds of one thread, and of the first
//! three questions, which part of the exact ranks of the exact best twenty those have that were found.

use hedgerow::{Listing, Node, QueryError, RankingOptions, Snapshot};
use hedgerow_benches::{median, timed};
use std::collections::HashMap;

/// Entities that questions begin at.
const ENTITIES: usize = 2000;
const EACH: usize = 3;
const EXACT: usize = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: pagerank STORE [RESIDUAL]");
        std::process::exit(2);
    };
    let residual: f64 = rest.first().map_or(Ok(1e-4), |residual| residual.parse())?;
    let snapshot = Snapshot::open(path)?;
    let pushed = RankingOptions { chunks: true, residual_max: Some(residual), ..RankingOptions::default() };
    let exact = RankingOptions { residual_max: None, limit: 10_000, ..pushed.clone() };
    let questions = questions(&snapshot)?;
    let (mut times, mut shares) = (Vec::new(), Vec::new());
    for (place, seeds) in questions.iter().enumerate() {
        let (seconds, ranking) = timed(|| snapshot.pagerank(seeds, &pushed));
        times.push(seconds * 1e3);
        if place < EXACT {
            let found = ranking?.ranks;
            let ranks = snapshot.pagerank(seeds, &exact)?.ranks;
            let best: f64 = ranks.iter().take(found.len()).map(|line| line.score).sum();
            let by_key: HashMap<&str, f64> = ranks.iter().map(|line| (line.key.as_str(), line.score)).collect();
            let ours: f64 = found.iter().filter_map(|line| by_key.get(line.key.as_str())).sum();
            shares.push(ours / best);
        }
    }
    times.sort_by(f64::total_cmp);
    let most = times[times.len() * 99 / 100];
    let middle = median(times);
    let asked = questions.len();
    print!("{{\"questions\":{asked},\"residual\":{residual:e},");
    println!("\"median_ms\":{middle:.3},\"p99_ms\":{most:.3},\"share_of_exact\":{shares:.4?}}}");
    Ok(())
}

fn questions(snapshot: &Snapshot) -> Result<Vec<Vec<Node>>, QueryError> {
    let Listing::Entities(lines) = snapshot.list_entities(ENTITIES)? else { return Ok(Vec::new()) };
    let names: Vec<&str> = lines.iter().step_by(10).map(|line| line.name.as_str()).collect();
    let seed = |place: usize| snapshot.find(&format!("entity:{}", names[place % names.len()]));
    (0..names.len()).map(|start| (0..EACH).map(|step| seed(start + step * 67)).collect()).collect()
}
