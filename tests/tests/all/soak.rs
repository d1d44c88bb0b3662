//! Random schedules of all kinds of faults at once: over one job of `train` after the other, and over a service with its clients. The seed
//! determines the schedule. The time of a fault depends on the machine; the result must not.
//!
//! `SOAK_SECONDS=600 SEED=7 cargo test --workspace --test all soak:: -- --ignored --nocapture` runs each for so long, prints a line per fault
//! or request, and counts at the end.

mod faults;
mod service;
mod train;

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("it is a number"))
}
