//! A fleet of the calling thread alone, for tests and small jobs.

use std::sync::Arc;

use basics::clock;
use grammaton::work::lease::TaskIndex;
use grammaton::work::task::Answer;
use proto::cpu_time;

use super::local::lacks_memory;
use super::{Compute, FleetError, Map, MapReport, Stage, Tasks, engine};
use scheduler::Failure;

/// Runs tasks one after the other on the calling thread.
pub struct Inline {
    compute: Compute,
}

impl Inline {
    /// A fleet that computes with `compute` instead of the engine.
    pub fn new(compute: Compute) -> Inline {
        Inline { compute }
    }
}

impl Default for Inline {
    fn default() -> Inline {
        Inline::new(engine())
    }
}

impl Map for Inline {
    fn map(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        let begun = clock::instant();
        let mut busy_by_task = Vec::with_capacity(tasks.len());
        for at in 0..tasks.len() {
            let started = cpu_time::of_thread();
            let answer = tasks.make(at).and_then(|task| Ok((self.compute)(&task)?)).map_err(|error| {
                let (task, detail) = (TaskIndex(at as u32), format!("{error:#}"));
                let failure = Failure::Task { task, detail, lacks_memory: lacks_memory(&error) };
                FleetError::Batch { stage, failure, decisions: Vec::new() }
            })?;
            busy_by_task.push(cpu_time::of_thread() - started);
            each(at, answer);
        }
        let busy = busy_by_task.iter().sum();
        let (wall, attempts) = (begun.elapsed(), tasks.len());
        Ok(MapReport { wall, busy, busy_by_task, attempts, slots: 1, ..MapReport::default() })
    }
}
