//! The catalog: bytes that are damaged, and a database of redb that is sound and says anything.

use crate::checks::image::{Image, environment};
use crate::checks::input::Input;
use hedgerow::{Batch, Quiet, Snapshot, Store, verify};
use hedgerow_durability::{Disk, PIPELINE, document};
use redb::{Database, StorageBackend, TableDefinition};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

const STATE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");
const PENDING: TableDefinition<'_, (u32, u64, u64), u64> = TableDefinition::new("pending");
const FIELDS: [&str; 7] = ["format", "store", "generation", "random", "bytes", "hash", "next file"];

/// Whatever the catalog holds, opening for writing refuses, or gives the store that readers see and goes on from there.
pub fn check(bytes: &[u8]) {
    let mut input = Input(bytes);
    let mut image = Image::settled().clone();
    let damaged = input.byte() % 2 == 0;
    if damaged {
        damage(&mut image.catalog, &mut input);
    } else {
        image.catalog = forged(&image.catalog, &mut input);
    }
    let disk = image.disk(|_| ());
    let before = documents(&Snapshot::open_in(&disk).expect("readers don't open the catalog"));
    verify(&environment(&disk, 1), &Quiet).expect("there is a store, and no one cancels");
    let Ok(store) = Store::open_in(environment(&disk, 2)) else { return };
    assert_eq!(documents(&store.snapshot()), before, "a store that opens is the one that readers see");
    if store.snapshot().generation() < u64::MAX - 8 {
        go_on(&store, &disk, before);
    }
}

fn go_on(store: &Store, disk: &Disk, mut expected: Vec<(String, String)>) {
    let mut batch = Batch::default();
    let given = vec![document("new", "Dover owns Ely.")];
    PIPELINE.stage(&store.snapshot(), given, &mut batch, &Quiet).expect("no one cancels");
    if store.commit(batch).is_err() {
        return;
    }
    expected.push(("new".into(), "Dover owns Ely.".into()));
    let read = Snapshot::open_in(disk).expect("what is published can be read");
    assert_eq!(documents(&read), expected, "a commit adds to what was there");
    let problems = verify(&environment(disk, 3), &Quiet).expect("there is a store").problems;
    assert!(problems.is_empty(), "after a commit everything is sound: {problems:?}");
}

fn documents(snapshot: &Snapshot) -> Vec<(String, String)> {
    let ids = snapshot.document_ids();
    let all = ids.map(|id| snapshot.document(id).expect("it is live"));
    let mut all: Vec<_> =
        all.map(|found| (found.key().expect("it is sound").to_owned(), found.text().expect("it is sound"))).collect();
    all.sort();
    all
}

fn damage(catalog: &mut Vec<u8>, input: &mut Input<'_>) {
    let length = catalog.len().max(1);
    for _ in 0..input.byte() % 16 {
        let kind = input.byte();
        // Most of the file is empty: half of the places lie in its first page.
        let place = input.word() as usize % if kind & 8 == 0 { 512 } else { length };
        match kind % 4 {
            0 => catalog.get_mut(place).into_iter().for_each(|byte| *byte = input.byte()),
            1 => catalog.get_mut(place).into_iter().for_each(|byte| *byte ^= 1 << (input.byte() % 8)),
            2 => catalog.truncate(length - place % length.min(8192)),
            _ => {
                let value = input.long().to_le_bytes();
                catalog.iter_mut().skip(place).zip(value).for_each(|(to, from)| *to = from);
            }
        }
    }
}

/// A database of redb in which some fields are missing or say something else, and files are pending that never were, or that are.
fn forged(catalog: &[u8], input: &mut Input<'_>) -> Vec<u8> {
    let memory = Memory(Arc::new(Mutex::new(catalog.to_vec())));
    let database = Database::builder().create_with_backend(memory.clone()).expect("the catalog is sound");
    let transaction = database.begin_write().expect("memory can be written");
    {
        let mut table = transaction.open_table(STATE).expect("the catalog has it");
        for _ in 0..input.byte() % 6 {
            let field = FIELDS[usize::from(input.byte()) % FIELDS.len()];
            match input.byte() % 4 {
                0 => drop(table.remove(field).expect("memory can be written")),
                1 => drop(table.insert(field, &input.long().to_le_bytes()[..]).expect("memory can be written")),
                2 => drop(
                    table.insert(field, &u64::from(input.byte()).to_le_bytes()[..]).expect("memory can be written"),
                ),
                _ => drop(table.insert(field, input.take(16)).expect("memory can be written")),
            }
        }
        let mut table = transaction.open_table(PENDING).expect("the catalog has it");
        let manifest = &Image::settled().manifest;
        for _ in 0..input.byte() % 6 {
            let kind = u32::from(input.byte() % 6);
            let (segment, live) = (usize::from(input.byte()), input.byte().is_multiple_of(2));
            let file = manifest.segments[segment % manifest.segments.len()].file;
            let (number, random) = if live { (file.number, file.random) } else { (input.long(), input.long()) };
            table.insert((kind, number, random), input.long()).expect("memory can be written");
        }
    }
    transaction.commit().expect("memory can be written");
    drop(database);
    memory.bytes().clone()
}

/// A file of redb in memory.
#[derive(Clone, Debug)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn bytes(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StorageBackend for Memory {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let bytes = self.bytes();
        let found = bytes.get(start..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.bytes().resize(usize::try_from(length).map_err(io::Error::other)?, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let mut all = self.bytes();
        let place = all.get_mut(start..).and_then(|rest| rest.get_mut(..bytes.len()));
        place.ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(bytes);
        Ok(())
    }
}

/// The catalog as it is, damaged in each way, and saying something else.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        vec![0, 0],
        vec![0, 1, 0, 9, 0, 0, 0, 3],
        vec![0, 1, 9, 64, 16, 0, 0, 3],
        vec![0, 1, 2, 0, 16, 0, 0],
        vec![0, 1, 3, 20, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255],
        vec![1, 0, 0],
        vec![1, 1, 2, 2, 200, 0],
        vec![1, 1, 2, 2, 1, 0],
        vec![1, 1, 6, 2, 1, 0],
        vec![1, 1, 5, 0, 0],
        vec![1, 0, 1, 1, 0, 0, 1, 0, 0, 0],
    ]
}
