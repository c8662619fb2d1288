//! Packs: a front of any bytes, and a store in a pack whose front and files are mutated.

use crate::checks::database::questioned;
use crate::checks::edits::edit;
use crate::checks::image::{Image, put};
use crate::checks::input::Input;
use hedgerow::{Env, FileName, PackDisk, Quiet, verify};
use hedgerow_durability::Disk;
use hedgerow_format::Record;
use hedgerow_format::checksum::{crc32c, hash};
use hedgerow_format::file::{FileKind, Whole};
use hedgerow_format::head::Head;
use hedgerow_format::manifest::Manifest;
use hedgerow_format::pack::{Pack, PackEntry};
use hedgerow_format::section::{SectionKind, Sections};
use std::sync::Arc;

/// What is read lies inside the pack and apart; a pack that `verify` finds sound answers as a store does.
pub fn check(bytes: &[u8]) {
    let mut input = Input(bytes);
    if input.byte() % 2 == 0 {
        let mut pack = input.0.to_vec();
        read(&pack);
        mend(&mut pack);
        read(&pack);
        return;
    }
    let mut image = Image::settled().clone();
    if input.byte() % 2 == 0 {
        edit(&mut image, &mut input);
    }
    let mut pack = packed(&image.disk(|_| ()).now());
    for _ in 0..input.byte() % 8 {
        let (place, byte) = (usize::from(input.short()) % 1024, input.byte());
        if let Some(found) = pack.get_mut(place) {
            *found = byte;
        }
    }
    if input.byte() % 4 == 0 {
        pack.truncate(pack.len().saturating_sub(usize::from(input.byte())));
    }
    mend(&mut pack);
    read(&pack);
    let disk = Disk::default();
    put(&disk, FileName::Pack, &pack);
    let Ok(disk) = PackDisk::open(&disk, FileName::Pack).map(Arc::new) else { return };
    let verified = verify(&Env::new(disk.clone()), &Quiet).expect("a pack has a head, and no one cancels");
    questioned(&*disk, verified.problems.is_empty(), &mut input);
}

fn read(bytes: &[u8]) {
    let Ok(pack) = Pack::parse(bytes) else { return };
    assert_eq!(pack.file_bytes(), bytes.len() as u64, "a pack is as long as it says");
    let mut free = pack.front().len();
    assert!(bytes.starts_with(&pack.front()), "a front that is read is written the same");
    for entry in pack.entries() {
        let kind = FileKind::from_number(entry.kind).expect("it was checked");
        let range = pack.find(kind, entry.number, entry.random).expect("what the directory has is found");
        assert!(range.start >= free && range.start % 64 == 0 && range.end <= bytes.len(), "{range:?} lies apart");
        assert_eq!(range.len() as u64, entry.length, "a file is as long as the directory says");
        free = range.end;
    }
}

/// Puts right the lengths, the hash of the directory and the checksum.
fn mend(pack: &mut [u8]) {
    if pack.len() < 256 {
        return;
    }
    let length = (pack.len() as u64).to_le_bytes();
    pack[32..40].copy_from_slice(&length);
    let directory = pack[24..32].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let end = usize::try_from(directory).ok().and_then(|length| length.checked_add(256));
    if let Some(found) = end.and_then(|end| pack.get(256..end)).map(|directory| hash(&[directory])) {
        pack[48..80].copy_from_slice(&found);
    }
    // The head lies at 80, with its checksum at 12.
    pack[92..96].fill(0);
    let sum = crc32c(&pack[80..176]).to_le_bytes();
    pack[92..96].copy_from_slice(&sum);
    let sum = crc32c(&pack[..252]).to_le_bytes();
    pack[252..256].copy_from_slice(&sum);
}

/// The pack of what is on a disk.
fn packed(state: &hedgerow_durability::State) -> Vec<u8> {
    let bytes = |name: FileName| state.bytes(&name).expect("it was put there");
    let head = Head::from_bytes(bytes(FileName::Head)).expect("it was written");
    let name = |entry: &PackEntry| FileName::Numbered {
        kind: FileKind::from_number(entry.kind).unwrap_or(FileKind::Links),
        number: entry.number,
        random: entry.random,
    };
    let named = FileName::Numbered { kind: FileKind::Manifest, number: head.generation, random: head.random };
    let file = Whole::open(FileKind::Manifest, bytes(named)).expect("it was written");
    let manifest = file.section(SectionKind::Manifest).and_then(Manifest::from_bytes).unwrap_or_default();
    let pack = Pack::of(head, &manifest).expect("it is short");
    let mut packed = pack.front();
    for entry in pack.entries() {
        packed.resize(usize::try_from(entry.offset).unwrap_or(packed.len()), 0);
        packed.extend_from_slice(state.bytes(&name(entry)).unwrap_or_default());
    }
    packed
}

/// A front, and a whole pack with questions.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut front = packed(&Image::settled().disk(|_| ()).now());
    front.truncate(256 + 3 * PackEntry::SIZE);
    let questions = [0, 0, 3, 0, 1, 2, 0, 1, 6, 255, 7];
    let whole = |edits: &[u8]| [&[1][..], edits, &questions].concat();
    vec![
        [&[0][..], &front].concat(),
        whole(&[1, 0, 1]),
        whole(&[1, 1, 24, 0, 80, 1]),
        whole(&[0, 1, 4, 1, 2, 9, 0, 1, 0, 0, 0, 0, 1]),
    ]
}
