//! A store and questions to it, mutated together.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hedgerow_fuzz::checks::run("database_and_query", bytes));
