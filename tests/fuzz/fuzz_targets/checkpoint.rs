#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| grammaton_fuzz::checkpoint::run(data));
