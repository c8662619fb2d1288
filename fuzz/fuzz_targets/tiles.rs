//! Parts of builds of edges that come from elsewhere.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hedgerow_fuzz::checks::run("tiles", bytes));
