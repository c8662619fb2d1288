//! Manifests of any bytes and of any values.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hedgerow_fuzz::checks::run("manifest", bytes));
