//! A store whose sections and manifest are mutated, and questions to it: an error or an answer.

use crate::checks::edits::edit;
use crate::checks::image::{Image, environment};
use crate::checks::input::Input;
use crate::checks::questions;
use hedgerow::{Limits, OpenError, Quiet, Snapshot, Vfs, verify};

/// Nothing panics, and what `verify` finds sound answers every question without damage.
pub fn check(bytes: &[u8]) {
    let mut input = Input(bytes);
    let mut image = if input.byte() % 2 == 0 { Image::settled() } else { Image::behind() }.clone();
    let raw = edit(&mut image, &mut input);
    let disk = image.disk(|manifest| {
        for (place, byte) in raw {
            let place = usize::from(place) % manifest.len();
            manifest[place] = byte;
        }
    });
    let verified = verify(&environment(&disk, 1), &Quiet).expect("there is a store, and no one cancels");
    let sound = verified.problems.is_empty();
    questioned(&disk, sound, &mut input);
}

/// Opens a store in both ways and asks what an input says.
pub fn questioned(disk: &dyn Vfs, sound: bool, input: &mut Input<'_>) {
    let checked = Snapshot::open_untrusted_in(disk, &Limits::default());
    let snapshot = match Snapshot::open_in(disk) {
        Ok(snapshot) => snapshot,
        Err(error) => {
            assert!(!sound, "verify finds nothing, and it cannot be opened: {error}");
            assert!(checked.is_err(), "who trusts nothing opens what does not open: {error}");
            return;
        }
    };
    let asked = questions::ask(&snapshot, input);
    let read = questions::everything(&snapshot);
    if sound {
        asked.expect("verify finds nothing, so no question finds damage");
        read.expect("verify finds nothing, so everything can be read");
        assert!(!matches!(checked, Err(OpenError::Damaged(_))), "verify finds nothing, and {checked:?}");
    }
}

/// Both stores as they are with every kind of question, and with one edit of every kind.
pub fn seeds() -> Vec<Vec<u8>> {
    let questions: [&[u8]; 9] = [
        &[0, 0, 3, 0, 1, 2, 0, 1],
        &[1, 31, 2, 0, 3, 130, 5, 5, 9, 1, 1, 1, 0, 2, 5, 1, 10, 1, 1],
        &[2, 0, 0, 2, 9, 10, 0, 0, 1],
        &[2, 255, 2, 255, 255, 255, 1, 5, 3],
        &[3, 5, 131, 2, 0, 1],
        &[4, 9, 0, 1, 0, 2, 2, 2, 2, 2],
        &[5, 4, 5, 5, 255],
        &[6, 255],
        &[7],
    ];
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for image in [0_u8, 1] {
        seeds.extend(questions.iter().map(|question| [&[image, 0][..], question].concat()));
        seeds.push([&[image, 0][..], &questions.concat()].concat());
        for kind in 0..8_u8 {
            seeds.push([&[image, 1, kind, 1, 2, 9, 0, 1, 0, 0, 0][..], questions[0]].concat());
        }
    }
    seeds
}
