//! Fuzz targets for every decoder of untrusted bytes: an accepted value is safe to use and unchanged after a round trip;
//! other bytes are an error, never a panic.
//!
//! Each target is a module with two functions: `run`, which takes any bytes, and `seeds`, valid inputs made by our own code,
//! from which the fuzzer starts. The repository contains no inputs from other sources.

pub mod bounds;

pub mod message;

pub mod payload;

pub mod task;

pub mod grammar;

pub mod corpus;

pub mod job;

pub mod model;

pub mod checkpoint;

mod parts;
mod trained;

/// A target, which takes any bytes.
pub type Run = fn(&[u8]);

/// Valid inputs, from which the fuzzer starts.
pub type Seeds = fn() -> Vec<Vec<u8>>;

/// All targets by name.
pub const TARGETS: [(&str, Run, Seeds); 8] = [
    ("message", message::run, message::seeds),
    ("payload", payload::run, payload::seeds),
    ("task", task::run, task::seeds),
    ("grammar", grammar::run, grammar::seeds),
    ("corpus", corpus::run, corpus::seeds),
    ("job", job::run, job::seeds),
    ("model", model::run, model::seeds),
    ("checkpoint", checkpoint::run, checkpoint::seeds),
];

/// Grammars of the seeds: one and two levels of adapted symbols, with and without their own settings.
const GRAMMARS: [&str; 3] = [
    "1 1 S --> Word\n1 1 S --> Word S\nWord --> L\n1 1 L --> a\n1 1 L --> a L\n1 1 L --> b\n1 1 L --> b L\n",
    "1 1 S --> C S\n1 1 S --> C\n2 0.5 1.5 C --> W\n1 0.5 1.5 C --> W W\n1 0 W --> a\nW --> b\n0.1 W --> a b\n",
    "'-1' --> x é\n1 1 S --> '-1'\n# recursive\nX --> a X\nX --> a\n",
];

#[cfg(test)]
mod tests {
    #[test]
    fn every_seed_runs() {
        for (name, run, seeds) in super::TARGETS {
            let seeds = seeds();
            assert!(!seeds.is_empty(), "{name} has no seeds");
            for seed in &seeds {
                run(seed);
                for cut in [seed.len() / 2, seed.len().saturating_sub(1)] {
                    run(&seed[..cut]);
                }
            }
        }
    }
}
