//! Headers and tables of any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hedgerow_fuzz::checks::run("header", bytes));
