//! Feeds any bytes to every decoder of the format.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hedgerow_fuzz::files(bytes));
