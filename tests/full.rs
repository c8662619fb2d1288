//! A disk that is full in earnest: a small file system in memory, where the system lets a test mount one.

use crate::stores::{PIPELINE, document, texts};
use hedgerow::{Batch, CommitError, Env, Quiet, Snapshot, Store, verify};
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A file system of 8 MiB, unmounted when this is dropped.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// The disk, or why there is none.
    fn mount() -> Result<Self, String> {
        let folder = TempDir::new().expect("there is room for a temporary folder");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(folder.path()).output();
        match mount {
            Ok(output) if output.status.success() => Ok(Self { folder }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Bytes of all files.
    fn used(&self) -> u64 {
        crate::stores::files(self.folder.path()).values().map(|bytes| bytes.len() as u64).sum()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What is left of it goes with the folder's own removal, which then fails without harm.
        Command::new("umount").arg(self.folder.path()).status().ok();
    }
}

/// Text that does not compress well.
fn text(row: usize) -> String {
    let mut numbers = crate::stores::Numbers(row as u64);
    (0..1500).map(|_| format!("{:x}", numbers.draw())).collect::<Vec<_>>().join(" ")
}

/// Commits documents until one commit fails; says how many held.
fn fill(store: &Store, first: usize) -> (usize, CommitError) {
    for row in first.. {
        let mut batch = Batch::default();
        let documents = vec![document(&format!("d{row}"), &text(row))];
        PIPELINE.stage(&store.snapshot(), documents, &mut batch, &Quiet).expect("no one cancels");
        if let Err(error) = store.commit(batch) {
            return (row, error);
        }
    }
    unreachable!("a disk of 8 MiB is full some time")
}

fn is_sound(path: &Path, documents: usize) {
    let verified = verify(&Env::folder(path).expect("it is a folder"), &Quiet).expect("it can be checked");
    assert_eq!(verified.problems, Vec::<String>::new());
    let held = texts(&Snapshot::open(path).expect("it opens for reading"));
    assert_eq!(held.len(), documents);
    assert!(held.iter().all(|(key, held)| *held == text(key[1..].parse().expect("it is a number"))));
}

#[test]
fn a_full_disk_is_an_error_that_says_so_and_the_store_opens_and_is_sound() {
    let disk = match SmallDisk::mount() {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped: no small disk can be mounted here ({reason})"),
    };
    let path = disk.folder.path().join("store");
    let store = Store::open_or_create(&path).expect("the store opens");
    let (held, error) = fill(&store, 0);
    match &error {
        CommitError::Storage(error) => assert_eq!(error.source.kind(), ErrorKind::StorageFull, "{error}"),
        CommitError::Unknown { .. } | CommitError::Poisoned { .. } => {}
        other => panic!("{other}"),
    }
    println!("full after {held} documents and {} bytes: {error}", disk.used());
    assert!(held > 20, "{held}");
    is_sound(&path, held);
    drop(store);
    let _store = Store::open_or_create(&path).expect("a store on a full disk opens for writing");
    is_sound(&path, held);
}
