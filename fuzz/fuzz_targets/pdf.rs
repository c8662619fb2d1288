//! PDF files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hedgerow_fuzz::checks::run("pdf", bytes));
