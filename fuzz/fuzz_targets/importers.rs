//! What people import, of any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hedgerow_fuzz::checks::run("importers", bytes));
