//! The similarity: one pair beside simsimd, a scan beside the memory's bandwidth, all pairs beside a loop over simsimd.

use hedgerow::{EdgeRules, Quiet, StagedChunk, StagedDocument, StagedVector, Store, dot, normalise};
use hedgerow_benches::{Scratch, copy_gb_per_s, median, timed};
use simsimd::SpatialSimilarity;
use std::hint::black_box;

const ROWS: usize = 20_000;
const DIMENSIONS: usize = 256;

fn main() {
    let rows = vectors();
    let pairs = |dot: &dyn Fn(&[f32], &[f32]) -> f64| {
        let block = &rows[..400];
        let times = (0..5).map(|_| {
            timed(|| {
                let mut sum = 0.0;
                for a in block {
                    for b in block {
                        sum += dot(a, b);
                    }
                }
                black_box(sum)
            })
            .0
        });
        0.16 / median(times.collect())
    };
    println!("one pair at a time, {DIMENSIONS} dimensions, one thread:");
    println!("  hedgerow (exact, f64) {:.0} Mpairs/s", pairs(&|a, b| f64::from(dot(a, b))));
    println!("  simsimd f32 {:.0} Mpairs/s", pairs(&|a, b| f32::dot(a, b).unwrap_or_default()));

    let times = (0..9).map(|_| timed(|| rows.iter().map(|row| dot(&rows[0], row)).fold(0.0, f32::max)).0);
    #[expect(clippy::cast_precision_loss, reason = "a figure to read")]
    let scanned = (ROWS * DIMENSIONS * 4) as f64 / 1e9 / median(times.collect());
    println!("scan of {ROWS} vectors, one thread: {scanned:.1} GB/s; this machine copies {:.1} GB/s", copy_gb_per_s());

    let scratch = Scratch::new("similarity");
    let store = Store::open_or_create(scratch.0.join("store")).expect("a store");
    let mut batch = hedgerow::Batch::default();
    for (number, row) in rows.iter().enumerate() {
        let vector = StagedVector { space: "bench".into(), model: "bench".into(), components: row.clone() };
        let chunk = StagedChunk { range: 0..1, vectors: vec![vector], ..StagedChunk::default() };
        let name = format!("{number:06}");
        batch.put(StagedDocument { name, text: "x".into(), chunks: vec![chunk], ..StagedDocument::default() });
    }
    store.commit(batch).expect("a commit");
    let rules = EdgeRules::new(99_000, 16);
    let (seconds, report) = timed(|| store.build_edges("bench", &rules, &Quiet).expect("edges"));
    #[expect(clippy::cast_precision_loss, reason = "a figure to read")]
    let rate = report[0].report.pairs as f64 / seconds / 1e6;
    println!(
        "edges of {ROWS} vectors, all threads, exact 99th percentile, durable: {seconds:.2} s, {rate:.0} Mpairs/s"
    );
}

/// Unit vectors around 200 centres, from a fixed seed. Synthetic and easier than real ones; only speed is measured.
fn vectors() -> Vec<Vec<f32>> {
    let mut state = 7_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        #[expect(clippy::cast_precision_loss, reason = "24 bits")]
        let unit = (state >> 40) as f32 / 16_777_216.0;
        unit - 0.5
    };
    let centres: Vec<Vec<f32>> = (0..200).map(|_| (0..DIMENSIONS).map(|_| next()).collect()).collect();
    (0..ROWS)
        .map(|row| {
            let mut vector: Vec<f32> = centres[row % 200].iter().map(|component| component + next()).collect();
            normalise(&mut vector).expect("a direction");
            vector
        })
        .collect()
}
