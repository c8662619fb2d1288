//! Whole files of any bytes, as they are and with their checksums mended one after another: header and tables.

use crate::checks::image::Image;
use hedgerow_format::Record;
use hedgerow_format::checksum::{BLOCK_BYTES, crc32c, hash};
use hedgerow_format::file::{FileHeader, FileKind, HEADER_BYTES, Layout, SECTION_ALIGNMENT, Whole};

const KINDS: [FileKind; 6] = FileKind::ALL;

/// No header and no table makes a reader panic, and what is read lies inside the file and apart.
pub fn check(bytes: &[u8]) {
    read(bytes);
    let mut mended = bytes.to_vec();
    for mend in [length, blocks, tables, checksum] {
        mend(&mut mended);
        read(&mended);
    }
    checksum(&mut mended);
    read(&mended);
}

fn read(bytes: &[u8]) {
    for kind in KINDS {
        let Ok(layout) = Layout::parse(kind, bytes) else { continue };
        let mut free = 256;
        for section in layout.sections() {
            let range = section.range.clone();
            let aligned = (range.start as u64).is_multiple_of(SECTION_ALIGNMENT);
            assert!(aligned && range.start >= free && range.end <= bytes.len(), "{section:?} lies apart and inside");
            assert!(Layout::blocks_of(&range).end <= layout.block_count(), "every byte has a checksum");
            assert_eq!(layout.section(section.kind), Some(range.clone()), "a section is found");
            free = range.end;
        }
        let whole = layout.check_all(bytes);
        assert_eq!(Whole::open(kind, bytes).is_ok(), whole.is_ok(), "all checks are one check");
    }
}

fn header(bytes: &[u8]) -> Option<FileHeader> {
    FileHeader::decode(bytes.get(..256)?)
}

/// Says that the file is as long as it is.
fn length(bytes: &mut [u8]) {
    let found = (bytes.len() as u64).to_le_bytes();
    if let Some(place) = bytes.get_mut(72..80) {
        place.copy_from_slice(&found);
    }
}

fn blocks(bytes: &mut [u8]) {
    let Some(header) = header(bytes) else { return };
    let end = header.section_table;
    let table = end.saturating_add(u64::from(header.sections).saturating_mul(32));
    for block in 0..u64::from(header.blocks).min(bytes.len() as u64 / BLOCK_BYTES + 1) {
        let range = (block * BLOCK_BYTES).max(HEADER_BYTES)..((block + 1) * BLOCK_BYTES).min(end);
        let place = |start: u64, end: u64| Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?);
        let Some(content) = place(range.start, range.end).and_then(|range| bytes.get(range)) else { return };
        let sum = crc32c(content).to_le_bytes();
        let row = table.saturating_add(block * 4);
        if let Some(found) = place(row, row.saturating_add(4)).and_then(|range| bytes.get_mut(range)) {
            found.copy_from_slice(&sum);
        }
    }
}

fn tables(bytes: &mut [u8]) {
    let Some(header) = header(bytes) else { return };
    let Some(tables) = usize::try_from(header.section_table).ok().and_then(|start| bytes.get(start..)) else { return };
    let found = hash(&[tables]);
    bytes[96..128].copy_from_slice(&found);
}

fn checksum(bytes: &mut [u8]) {
    if bytes.len() >= 256 {
        let sum = crc32c(&bytes[..252]).to_le_bytes();
        bytes[252..256].copy_from_slice(&sum);
    }
}

/// Every file of a small store, the long ones cut to a section or two.
pub fn seeds() -> Vec<Vec<u8>> {
    Image::settled().small_files()
}
