//! The fuzz targets without a nightly compiler: files of this repository, changed at random.
//!
//! Each target runs for `RAYMOND_FUZZ_SECONDS`, by default one. A failure names the shortest changes that
//! cause it. `fuzz/README.md` says how to run the targets longer, and with `cargo fuzz`.

#[path = "../../fuzz/bodies.rs"]
mod bodies;
#[path = "../../fuzz/seeds.rs"]
mod seeds;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

/// The number of inputs between two checks of the time.
const BATCH: u32 = 64;

/// A change of an input: its kind, position, length and operand.
type InputChange = (u8, u32, u16, u16);

fn seconds() -> f64 {
    let given = std::env::var("RAYMOND_FUZZ_SECONDS").ok();
    given.and_then(|seconds| seconds.parse().ok()).unwrap_or(1.0)
}

#[expect(clippy::print_stdout, reason = "the figures of a long run, which --nocapture shows")]
fn run(name: &str) {
    let (_, body) = bodies::TARGETS
        .into_iter()
        .find(|(known, _)| *known == name)
        .expect("a target of that name");
    let seeds = seeds::of(name);
    assert!(!seeds.is_empty(), "{name} has no files to begin with");
    for seed in &seeds {
        body(seed);
    }
    let (start, longest) = (Instant::now(), Duration::from_secs_f64(seconds()));
    let changes = prop::collection::vec(any::<InputChange>(), 0..8);
    let inputs = (0..seeds.len(), any::<u16>(), changes);
    let config = Config { cases: BATCH, failure_persistence: None, ..Config::default() };
    let mut count = seeds.len() as u64;
    while start.elapsed() < longest {
        let outcome = TestRunner::new(config.clone()).run(&inputs, |(seed, other, changes)| {
            let other = &seeds[usize::from(other) % seeds.len()];
            let input = changed(&seeds[seed], other, &changes);
            catch_unwind(AssertUnwindSafe(|| body(&input))).map_err(|_| {
                TestCaseError::fail(format!("{name}: {:?}", String::from_utf8_lossy(&input)))
            })
        });
        if let Err(TestError::Fail(why, changes)) = outcome {
            panic!("after {count} inputs: {why}\n{changes:?}");
        }
        count += u64::from(BATCH);
    }
    println!("{name}: {count} inputs in {:.0} s", start.elapsed().as_secs_f64());
}

/// Returns an input with changes, some of which take a part of another input.
fn changed(seed: &[u8], other: &[u8], changes: &[InputChange]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for &(kind, place, length, with) in changes {
        let at = place as usize % (bytes.len() + 1);
        let end = bytes.len().min(at + usize::from(length) % 48);
        match kind % 8 {
            0 => drop(bytes.drain(at..end)),
            1 => bytes.truncate(at),
            2 => {
                let part = bytes[at..end].to_vec();
                let to = usize::from(with) % (bytes.len() + 1);
                bytes.splice(to..to, part);
            }
            3 => {
                let from = usize::from(with) % (other.len() + 1);
                let part = &other[from..other.len().min(from + usize::from(length))];
                bytes.splice(at..at, part.iter().copied());
            }
            4 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << (with % 8);
                }
            }
            5 => bytes.insert(at, with.to_le_bytes()[0]),
            6 => {
                let word = seeds::WORDS[usize::from(with) % seeds::WORDS.len()];
                bytes.splice(at..at, word.bytes());
            }
            _ => {
                let word = seeds::WORDS[usize::from(with) % seeds::WORDS.len()];
                bytes.splice(at..end, word.bytes());
            }
        }
    }
    bytes
}

#[test]
fn seeds_are_written() {
    // Writes the first inputs of the targets into `RAYMOND_FUZZ_CORPUS`, for `fuzz/run`.
    let place = tempfile::tempdir().expect("a folder");
    let corpus = std::env::var_os("RAYMOND_FUZZ_CORPUS");
    let corpus = corpus.map_or_else(|| place.path().to_owned(), std::path::PathBuf::from);
    for (name, _) in bodies::TARGETS {
        let folder = corpus.join(name);
        std::fs::create_dir_all(&folder).expect("the folder of the target");
        for (number, seed) in seeds::of(name).iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number}")), seed).expect("a file of it");
        }
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )*

        #[test]
        fn every_fuzz_target_has_a_test() {
            let names = bodies::TARGETS.map(|(name, _)| name);
            assert_eq!(names.as_slice(), [$(stringify!($name)),*]);
        }
    };
}

targets! { tag template frontmatter graph program expression replies record inbox stream git_config }
