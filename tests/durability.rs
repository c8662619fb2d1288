//! A slice of what `hedgerow durability` does for as long as it is let: misfortunes of every kind, and planted bugs.

use hedgerow::Quiet;
use hedgerow_durability::{Campaign, Disk, Life, Scenario, Tried};
use rayon::prelude::*;

#[test]
fn whatever_happens_to_a_store_its_invariants_hold_afterwards() {
    let life = Life::undisturbed(1, &Disk::default()).expect("nothing happens to it");
    let tried: Vec<Tried> = (0..life.moments())
        .into_par_iter()
        .step_by(97)
        .map(|moment| {
            let mut tried = Tried::default();
            for scenario in Scenario::ALL {
                let suffered = life.suffer(scenario, moment, &mut tried);
                suffered.unwrap_or_else(|found| panic!("{} at moment {moment}: {found}", scenario.name()));
            }
            tried
        })
        .collect();
    let mut all = Tried::default();
    for part in tried {
        all.add(part);
    }
    assert!(all.states > 20 && all.triple > 3 && all.faults > 5 && all.readers > 3, "{all:?}");
}

#[test]
fn every_planted_bug_is_caught() {
    let campaign = Campaign { time: std::time::Duration::ZERO, hunting: true, ..Campaign::default() };
    let report = campaign.run(&Quiet).expect("nothing is wrong without misfortune");
    let free: Vec<_> = report.hunted.iter().filter(|hunted| hunted.caught.is_none()).collect();
    assert!(free.is_empty() && report.planted >= 29, "{free:?} of {}", report.planted);
}

#[test]
fn a_campaign_says_what_it_tried() {
    let campaign =
        Campaign { time: std::time::Duration::from_secs(10), seed: 2, hunting: false, ..Campaign::default() };
    let report = campaign.run(&Quiet).expect("nothing is wrong without misfortune");
    assert_eq!((report.wrong, report.panics), (0, 0), "{:?}", report.failures);
    assert!(report.lives > 0 && report.crash_points > 0);
}
