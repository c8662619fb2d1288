//! Bits flipped, files cut, swapped and exchanged: a sample of what `hedgerow_durability::flips` does to every bit.

use hedgerow::Planted;
use hedgerow_durability::flips::{Case, FlipOptions, Kind, run};

#[test]
fn damaged_files_give_errors_or_the_same_answers_and_verify_names_file_section_and_offset() {
    let report = run(&FlipOptions { sample: Some(24), threads: 2, ..FlipOptions::default() });
    assert!(report.is_clean(), "{report}");
    let all = report.total;
    assert_eq!((all.wrong, all.panics, all.hangs), (0, 0, 0), "{report}");
    assert!(all.bits >= 24 * 30 && all.truncations >= 24 * 30 && all.swaps >= 500, "{report}");
    assert!(all.exchanges >= 300 && all.detected > all.changes() / 2, "{report}");
    assert_eq!(all.detected + all.harmless, all.changes(), "{report}");
    // Only the catalog has bytes that nothing hangs on.
    let harmless = report.files.iter().filter(|(_, tally)| tally.harmless > 0);
    assert!(harmless.into_iter().all(|((_, ending), _)| ending == "redb"), "{report}");
}

#[test]
fn an_engine_that_looks_at_no_checksum_is_found_out() {
    let planted = Some(Planted::ChecksumIgnored);
    let options = FlipOptions { kinds: vec![Kind::Edges], sample: Some(40), planted, ..FlipOptions::default() };
    let report = run(&options);
    assert!(report.total.wrong > 20, "{report}");
    // Each failure begins with the case that replays it.
    let failure = report.failures.first().expect("there is a failure");
    let case: Case = failure.split(": ").next().expect("it has a case").parse().expect("it reads as one");
    let replayed = run(&FlipOptions { only: Some(case.clone()), ..options.clone() });
    assert_eq!((replayed.total.changes(), replayed.failures.first()), (1, Some(failure)));
    let sound = run(&FlipOptions { only: Some(case), planted: None, ..options });
    assert!(sound.total.changes() == 1 && sound.is_clean(), "{sound}");
}
