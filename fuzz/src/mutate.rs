//! Mutations of inputs that have a structure.

use crate::checks::sections::Sectioned;
use libfuzzer_sys::fuzzer_mutate;

/// Mutates one section, or what the manifest says, and leaves all lengths right; now and then a section goes, or is given
/// to another.
#[must_use]
pub fn sections(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut input = Sectioned::from_bytes(&data[..size]);
    let filled: Vec<usize> =
        (0..input.sections.len()).filter(|position| !input.sections[*position].is_empty()).collect();
    let pick = |shift: u32, count: usize| (seed >> shift) as usize % count.max(1);
    let Some(position) = filled.get(pick(8, filled.len())).copied() else {
        return fuzzer_mutate(data, size, max_size);
    };
    match seed % 16 {
        0 => return fuzzer_mutate(data, size, max_size),
        1 => input.sections[position].clear(),
        2 => input.sections[pick(16, filled.len())] = input.sections[position].clone(),
        _ => {
            let section = &mut input.sections[position];
            let length = section.len();
            let room = (length + 64).min(usize::from(u16::MAX)).max(length);
            section.resize(room, 0);
            let length = fuzzer_mutate(section, length, room);
            section.truncate(length);
        }
    }
    let bytes = input.to_bytes();
    let length = bytes.len().min(max_size);
    data[..length].copy_from_slice(&bytes[..length]);
    length
}
