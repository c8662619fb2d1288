//! Power cuts on a real file system: ext4 on an image, shut down without its journal being flushed, and mounted again.
//!
//! What was not synced is really lost. It needs root, loop devices, `mkfs.ext4` and `xfs_io` (Debian: `xfsprogs`), and runs
//! only where `HEDGEROW_POWER` names a number of cuts.

use crate::kill::{DOCUMENTS, acknowledged, check, moment, start, write_documents};
use crate::stores::Numbers;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;
use tempfile::TempDir;

/// An ext4 file system in a file, mounted while this lives.
struct Mounted {
    folder: TempDir,
}

impl Mounted {
    fn new() -> Self {
        let mounted = Self { folder: TempDir::new().expect("there is room for a temporary folder") };
        let image = std::fs::File::create(mounted.image()).expect("the image can be made");
        image.set_len(96 << 20).expect("the image can be made");
        std::fs::create_dir(mounted.path()).expect("the folder can be made");
        tool("mkfs.ext4", &["-q".as_ref(), "-F".as_ref(), mounted.image().as_path()]);
        mounted.mount();
        mounted
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    fn mount(&self) {
        tool("mount", &["-o".as_ref(), "loop".as_ref(), self.image().as_path(), self.path().as_path()]);
    }

    /// What was written since the last sync is gone for good.
    fn cut(&self) {
        tool("xfs_io", &["-x".as_ref(), "-c".as_ref(), "shutdown".as_ref(), self.path().as_path()]);
    }

    fn mount_again(&self) {
        tool("umount", &[self.path().as_path()]);
        self.mount();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.path()).status().ok();
    }
}

#[track_caller]
fn tool(name: &str, arguments: &[&Path]) {
    let output = Command::new(name).args(arguments).output().unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn after_a_power_cut_on_a_real_file_system_all_that_was_acknowledged_is_there() {
    let Ok(cuts) = std::env::var("HEDGEROW_POWER") else {
        println!(
            "skipped: HEDGEROW_POWER names no number of cuts (LazyFS is not used: what it loses, a real ext4 loses here)"
        );
        return;
    };
    let cuts: usize = cuts.parse().expect("it is a number");
    let mounted = Mounted::new();
    let documents = mounted.folder.path().join("documents.jsonl");
    write_documents(&documents);
    let begin = Instant::now();
    let mut child = start(&mounted.path().join("whole"), &documents);
    assert_eq!(acknowledged(&mut child), DOCUMENTS);
    assert!(child.wait().expect("it ends").success());
    let (whole, mut numbers, mut cut_short) = (begin.elapsed(), Numbers(20_261_130), 0);
    std::fs::remove_dir_all(mounted.path().join("whole")).expect("it can be removed");
    for cut in 0..cuts {
        let store = mounted.path().join(format!("store-{cut}"));
        let mut before = 0;
        // The power goes again while what was left is taken up.
        for part in 0..=cut % 3 {
            let delay = moment(whole, &mut numbers);
            let mut child = start(&store, &documents);
            thread::sleep(delay);
            mounted.cut();
            child.kill().expect("it is ours");
            let acknowledged = before + acknowledged(&mut child);
            child.wait().expect("it ends");
            mounted.mount_again();
            before = check(&store, acknowledged, &format!("cut {cut}, part {part}, after {delay:?}"));
            cut_short += usize::from(before < DOCUMENTS);
        }
        if store.exists() {
            std::fs::remove_dir_all(&store).expect("it can be removed");
        }
    }
    println!("{cuts} stores, {cut_short} cuts before the end; whole import {whole:?}");
    assert!(cuts == 0 || cut_short > 0, "no cut came before the end");
}
