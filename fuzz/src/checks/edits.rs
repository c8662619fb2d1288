//! Edits of a store's sections and manifest that an input asks for.

use crate::checks::image::{Image, Stored};
use crate::checks::input::Input;

/// Does to an image what an input says; gives what is to be done to the bytes of its manifest.
pub fn edit(image: &mut Image, input: &mut Input<'_>) -> Vec<(u16, u8)> {
    let mut raw = Vec::new();
    for _ in 0..input.byte() % 16 {
        match input.byte() % 8 {
            0 => raw.push((input.short(), input.byte())),
            1 => manifest(image, input),
            2 => swap(image, input),
            kind => {
                let position = usize::from(input.byte()) % image.files.len().max(1);
                if let Some(stored) = image.files.get_mut(position) {
                    section(stored, kind, input);
                }
            }
        }
    }
    raw
}

fn manifest(image: &mut Image, input: &mut Input<'_>) {
    let (field, row, value) = (input.byte() % 14, usize::from(input.byte()), input.word());
    let manifest = &mut image.manifest;
    // Mostly near those that there are.
    let id = if value % 4 == 0 { value } else { value % 64 };
    match field {
        0 => manifest.documents_end = id,
        1 => manifest.chunks_end = id,
        2 => manifest.facts = u64::from(value),
        3 => drop((row < manifest.segments.len()).then(|| (manifest.segments.remove(row), image.files.remove(row)))),
        field => {
            let segments = manifest.segments.len().max(1);
            if let Some(entry) = manifest.segments.get_mut(row % segments).filter(|_| field < 10) {
                match field {
                    4 => entry.first_document = id,
                    5 => entry.documents_end = id,
                    6 => entry.documents = id,
                    7 => entry.first_chunk = id,
                    8 => entry.chunks_end = id,
                    _ => entry.chunks = id,
                }
            }
            let projections = manifest.projections.len().max(1);
            if let Some(entry) = manifest.projections.get_mut(row % projections).filter(|_| field >= 10) {
                match field {
                    10 => entry.kind = value % 5,
                    11 => entry.chunks_end = id,
                    12 => entry.facts = u64::from(value % 64),
                    _ if value % 5 == 0 => entry.pairs = value % 4,
                    _ if value % 7 == 0 => entry.settings.shared_chunks = value % 1100,
                    _ => entry.space = if value % 2 == 0 { "other".into() } else { String::new() },
                }
            }
        }
    }
}

/// Gives one file a section of another.
fn swap(image: &mut Image, input: &mut Input<'_>) {
    let count = image.files.len().max(1);
    let (from, to) = (usize::from(input.byte()) % count, usize::from(input.byte()) % count);
    let position = usize::from(input.byte());
    let Some(source) = image.files.get(from) else { return };
    let Some((kind, content)) = source.sections.get(position % source.sections.len().max(1)).cloned() else { return };
    let sections = &mut image.files[to].sections;
    match sections.binary_search_by_key(&kind, |(kind, _)| *kind) {
        Ok(found) => sections[found].1 = content,
        Err(place) => sections.insert(place, (kind, content)),
    }
}

fn section(stored: &mut Stored, edit: u8, input: &mut Input<'_>) {
    let position = usize::from(input.byte()) % stored.sections.len().max(1);
    let Some((kind, content)) = stored.sections.get_mut(position) else { return };
    let element = (kind.element_bytes() as usize).max(1);
    let place = usize::from(input.short()) % content.len().max(1);
    let first = place - place % element;
    let word = (place - place % 4)..(place - place % 4 + 4);
    match edit {
        3 => {
            let count = usize::from(input.byte() % 8) + 1;
            content.iter_mut().skip(place).zip(input.take(count)).for_each(|(to, from)| *to = *from);
        }
        4 => {
            let value = input.word();
            content.get_mut(word).into_iter().for_each(|bytes| bytes.copy_from_slice(&value.to_le_bytes()));
        }
        5 => {
            let added = u32::from(input.byte()).wrapping_sub(128);
            if let Some(bytes) = content.get_mut(word) {
                let before = bytes.iter().rev().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
                bytes.copy_from_slice(&before.wrapping_add(added).to_le_bytes());
            }
        }
        6 => {
            let from = usize::from(input.short()) % content.len().max(1);
            let from = from - from % element;
            let copied: Vec<u8> = content.iter().skip(from).take(element).copied().collect();
            content.iter_mut().skip(first).zip(copied).for_each(|(to, from)| *to = from);
        }
        _ => {
            let count = usize::from(input.byte() % 8) * element;
            let end = (first + count).min(content.len());
            if input.byte().is_multiple_of(2) {
                content.drain(first..end);
            } else {
                let copied = content[first..end].to_vec();
                content.splice(first..first, copied);
            }
        }
    }
}
