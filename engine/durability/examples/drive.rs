//! Scratch driver.
use hedgerow_durability::{Disk, Life, Scenario, Tried};
use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let seeds: u64 = args[1].parse().unwrap();
    let per: u64 = args[2].parse().unwrap();
    let only = args.get(3).cloned();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        for scenario in Scenario::ALL {
            if only.as_deref().is_some_and(|only| only != scenario.name()) {
                continue;
            }
            let mut tried = Tried::default();
            let mut bad = 0;
            let t = Instant::now();
            let mut life_time = 0.0;
            for seed in 0..seeds {
                let l = Instant::now();
                let life = Life::undisturbed(seed, &Disk::default()).unwrap();
                life_time += l.elapsed().as_secs_f64();
                for n in 0..per {
                    for moment in 0..life.moments() {
                        if let Err(e) = life.suffer(scenario, moment, n + seed * 1000, &mut tried) {
                            bad += 1;
                            if bad < 6 {
                                println!(
                                    "{} seed {seed} moment {moment}/{} n {n}: {}",
                                    scenario.name(),
                                    life.moments(),
                                    &e.chars().take(600).collect::<String>()
                                );
                            }
                        }
                    }
                }
            }
            let s = t.elapsed().as_secs_f64() - life_time;
            println!(
                "{:?} {tried:?} bad {bad} in {s:.1}s = {:.0} states/s; life {:.3}s",
                scenario,
                tried.states as f64 / s,
                life_time / seeds as f64
            );
        }
    });
}
