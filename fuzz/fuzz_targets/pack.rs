//! Packs: a front of any bytes, and a store in a pack.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hedgerow_fuzz::checks::run("pack", bytes));
