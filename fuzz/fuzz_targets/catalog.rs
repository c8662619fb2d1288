//! Catalogs that are damaged or say anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hedgerow_fuzz::checks::run("catalog", bytes));
