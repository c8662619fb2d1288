//! The bench of nearest vectors, on vectors made here: exact search finds all of them, in each way of asking for it.

use crate::command::{Folder, Run, command};
use crate::edge_lists::shaped;
use crate::stores::Numbers;
use serde_json::{Value, json};

/// A file of made-up vectors.
fn vectors(folder: &Folder, name: &str, rows: usize, seed: u64) -> String {
    let mut numbers = Numbers(seed);
    let component = |_| {
        let number = f32::from(u8::try_from(numbers.below(200)).expect("it is below 200")) - 99.5;
        u64::from(number.to_bits())
    };
    let components: Vec<u64> = (0..rows * 8).map(component).collect();
    folder.write(name, shaped("<f4", &format!("{rows}, 8"), &components))
}

/// Runs the bench, and reads its lines.
fn bench(arguments: &[&str]) -> Vec<Value> {
    let run = Run::of(command().args(["bench", "vectors", "--runs", "1", "--json"]).args(arguments));
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.err);
    run.out.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

#[test]
fn the_bench_of_vectors_finds_all_of_the_nearest_by_exact_search_filtered_or_not() {
    let folder = Folder::new();
    let base = vectors(&folder, "base.npy", 300, 3);
    let queries = vectors(&folder, "queries.npy", 20, 5);
    let kept = folder.store();
    let given = ["--base", &base, "--queries", &queries, "--store", &kept, "--filter-percent", "10,1"];
    let lines = bench(&[&given[..], &["--segments", "2", "--threads", "2"]].concat());
    let names: Vec<&Value> = lines.iter().map(|line| &line["setting"]).collect();
    let whole = ["exact", "scan", "scan-all", "batch"];
    assert_eq!(names.iter().filter(|name| whole.iter().any(|whole| **name == whole)).count(), 6);
    assert!(["0.95", "0.99"].iter().all(|name| names.iter().any(|other| *other == name)), "{names:?}");
    for line in &lines {
        assert_eq!(
            [&line["recall"], &line["rows"], &line["queries"]],
            [&json!(1.0), &json!(300), &json!(20)],
            "{line}"
        );
        for name in ["build_s", "disk_mb", "open_ms", "first_ms", "qps"] {
            assert!(line[name].as_f64() > Some(0.0), "{name} of {line}");
        }
        assert_eq!(line["share_of_bandwidth"].is_f64(), line["gb_per_s"].is_f64());
        assert_eq!(line["share_of_peak"].is_f64(), line["setting"] == "batch");
        assert_eq!(line["p99_us"].is_f64(), line["setting"] != "batch");
    }
    let exact = lines.iter().filter(|line| line["setting"] == "exact");
    let percents: Vec<&Value> = exact.map(|line| &line["filter_percent"]).collect();
    assert_eq!(percents, [&Value::Null, &json!(10), &json!(1)]);

    let again = bench(&[&given[..6], &["--settings", "exact"]].concat());
    assert!(again.len() == 1 && again[0]["build_s"].is_null() && again[0]["recall"] == 1.0, "{again:?}");
    // Of every query the nearest by another order: none of them is right but by chance.
    let truth = folder.write("truth.npy", shaped("<i4", "20, 1", &(0..20).map(|_| 299).collect::<Vec<u64>>()));
    let wrong = bench(&[&given[..6], &["--settings", "exact", "--truth", &truth]].concat());
    assert!(wrong[0]["recall"].as_f64() < Some(0.5), "{wrong:?}");
    let few = bench(&["--base", &base, "--queries", &queries, "--rows", "5", "--settings", "exact"]);
    assert_eq!([&few[0]["recall"], &few[0]["rows"]], [&json!(1.0), &json!(5)], "{few:?}");
}

#[test]
fn the_bench_of_vectors_says_what_does_not_fit() {
    let folder = Folder::new();
    let base = vectors(&folder, "base.npy", 30, 3);
    let queries = vectors(&folder, "queries.npy", 4, 5);
    let kept = folder.store();
    let given = ["--base", &base, "--queries", &queries, "--store", &kept, "--settings", "exact"];
    bench(&given);
    let short = folder.write("short.npy", shaped("<u4", "1, 2", &[0, 1]));
    let flat = folder.write("flat.npy", shaped("<u4", "2,", &[0, 1]));
    let narrow = folder.write("narrow.npy", shaped("<u4", "4, 0", &[]));
    for (more, said) in [
        (&["--rows", "20"] as &[&str], "expected 20 vectors in the space bench, found 30"),
        (&["--settings", "guess"], "0.99, slack-180, exact, scan, scan-all, batch, found guess"),
        (&["--filter-percent", "50"], "expected one made with the same --filter-percent"),
        (&["--truth", &short], "expected 4 rows, one a query, found 1"),
        (&["--truth", &flat], "expected two dimensions with 1 to 65,536 columns, found one dimension"),
        (&["--truth", &narrow], "found 0 columns"),
    ] {
        let run = Run::of(command().args(["bench", "vectors"]).args(given).args(more));
        assert!(run.code != 0 && run.err.contains(said), "{more:?}: {}", run.err);
    }
    let human = Run::of(command().args(["bench", "vectors"]).args(given));
    assert!(human.out.contains("30 of 8 dimensions") && human.out.contains("1.0000"), "{}", human.out);
}
