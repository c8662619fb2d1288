//! Operations, crashes and faults on a simulated disk, beside a model.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hedgerow_fuzz::checks::run("operations", bytes));
