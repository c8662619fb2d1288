//! Power cuts and failing calls at every operation of a backup and of a restore.

use crate::pack::{NEW, REPLACE, env};
use crate::stores::{put, texts};
use hedgerow::{BackupError, Env, FileName, OpenError, PackDisk, Quiet, Snapshot, Store, verify};
use hedgerow_durability::{Disk, Fault, FaultKind};
use std::sync::Arc;

/// Two generations of a store on a simulated disk.
fn two_generations() -> [Arc<Snapshot>; 2] {
    let store = Store::open_or_create_in(env(&Disk::default())).expect("the disk is sound");
    put(&store, &[("a", "Alice owns Bridge."), ("b", "The old Bridge of Dover.")]);
    let first = store.snapshot();
    put(&store, &[("b", "Carol met Alice in Ely."), ("c", "Ely owns Dover.")]);
    [first, store.snapshot()]
}

#[test]
fn a_power_cut_at_any_operation_of_a_backup_leaves_the_old_pack_or_the_new_one() {
    let [old, new] = two_generations();
    for first in [false, true] {
        let disk = Disk::default();
        if !first {
            old.backup_in(&env(&disk), NEW, &Quiet).expect("the disk is sound");
        }
        disk.record();
        new.backup_in(&env(&disk), REPLACE, &Quiet).expect("the disk is sound");
        disk.mark(1);
        let recorded = disk.recorded();
        assert!(recorded.len() > 10);
        for (number, (state, acknowledged)) in recorded.iter().enumerate() {
            for seed in 0..40 {
                let left = if seed == 0 { state.killed() } else { state.cut(seed) };
                let what = format!("operation {number}, seed {seed}, first {first}");
                match PackDisk::open(&left, FileName::Pack) {
                    Ok(pack) => {
                        let verified = verify(&Env::new(Arc::new(pack)), &Quiet).expect("there is one");
                        assert_eq!(verified.problems, Vec::<String>::new(), "{what}");
                        let least = if *acknowledged == 1 || first { new.generation() } else { old.generation() };
                        assert!(verified.generation >= least, "{what}");
                    }
                    Err(_) => assert!(
                        first && *acknowledged == 0 && !left.now().names().any(|name| name == FileName::Pack),
                        "{what}"
                    ),
                }
            }
        }
    }
}

#[test]
fn a_power_cut_at_any_operation_of_a_restore_leaves_no_store_or_all_of_it_and_doing_it_again_completes_it() {
    let [_, new] = two_generations();
    let expected = texts(&new);
    let disk = Disk::default();
    disk.record();
    new.restore_in(&env(&disk), &Quiet).expect("the disk is sound");
    disk.mark(1);
    let recorded = disk.recorded();
    assert!(recorded.len() > 30);
    let (mut none, mut whole) = (0, 0);
    for (number, (state, acknowledged)) in recorded.iter().enumerate() {
        for seed in 0..24 {
            let left = || if seed == 0 { state.killed() } else { state.cut(seed) };
            let what = format!("operation {number}, seed {seed}");
            match Snapshot::open_in(&left()) {
                Ok(snapshot) => assert_eq!(texts(&snapshot), expected, "{what}"),
                Err(OpenError::NotFound { .. } | OpenError::Unfinished { .. } | OpenError::NoHead { .. }) => {
                    assert_eq!(*acknowledged, 0, "{what}");
                }
                Err(error) => panic!("{what}: {error}"),
            }
            match Store::open_in(env(&left())) {
                Ok(store) => {
                    whole += 1;
                    assert_eq!(texts(&store.snapshot()), expected, "{what}");
                }
                Err(OpenError::NotFound { .. } | OpenError::Unfinished { .. }) if *acknowledged == 0 => none += 1,
                Err(error) => panic!("{what}: {error}"),
            }
            let again = left();
            match new.restore_in(&env(&again), &Quiet) {
                Ok(_) => {}
                // It came to its end the first time.
                Err(BackupError::NotEmpty { .. }) if Snapshot::open_in(&again).is_ok() => {}
                Err(error) => panic!("{what}: cannot be restored again: {error}"),
            }
            let store = Store::open_in(env(&again)).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(texts(&store.snapshot()), expected, "{what}");
            put(&store, &[("z", "Dave owns Ferry.")]);
            drop(store);
            let verified = verify(&env(&again), &Quiet).expect("there is a store");
            assert_eq!(verified.problems, Vec::<String>::new(), "{what}");
        }
    }
    assert!(none > 100 && whole > 10, "{none} times no store, {whole} times a whole one");
}

#[test]
fn a_call_that_fails_in_a_backup_or_a_restore_is_told_and_harms_nothing() {
    let [old, new] = two_generations();
    let (before, expected) = (texts(&old), texts(&new));
    for error in FaultKind::ALL {
        for for_ever in [false, true] {
            let mut at = 0;
            loop {
                let disk = Disk::default();
                old.backup_in(&env(&disk), NEW, &Quiet).expect("the disk is sound");
                disk.fail(Fault { at, for_ever, error });
                let done = new.backup_in(&env(&disk), REPLACE, &Quiet);
                let reached = disk.calls() > at;
                disk.mend();
                let pack = PackDisk::open(&disk, FileName::Pack).expect("a pack is there");
                let found = texts(&Snapshot::open_in(&pack).expect("it opens"));
                let what = format!("{error:?} at {at}, for ever {for_ever}: {done:?}");
                assert!(if done.is_ok() { found == expected } else { found == before || found == expected }, "{what}");

                let disk = Disk::default();
                disk.fail(Fault { at, for_ever, error });
                let restored = new.restore_in(&env(&disk), &Quiet);
                let more = disk.calls() > at;
                disk.mend();
                match (restored, Snapshot::open_in(&disk)) {
                    (_, Ok(snapshot)) => assert_eq!(texts(&snapshot), expected, "{what}"),
                    (Err(_), Err(_)) => drop(new.restore_in(&env(&disk), &Quiet).expect("doing it again completes it")),
                    (Ok(_), Err(error)) => panic!("{what}: {error}"),
                }
                if !reached && !more {
                    break;
                }
                at += 1;
            }
        }
    }
}
