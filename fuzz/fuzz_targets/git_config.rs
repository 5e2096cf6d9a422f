//! `cargo fuzz run git_config`
#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code, reason = "the bodies of the other targets")]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::git_config(bytes));
