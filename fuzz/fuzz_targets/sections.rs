//! Sections of any content in whole files: decoders, invariants, views.
#![no_main]

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    hedgerow_fuzz::mutate::sections(data, size, max_size, seed)
});
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hedgerow_fuzz::checks::run("sections", bytes));
