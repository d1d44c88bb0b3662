//! The single stream of a run's events: events of training, and events of the fleet while training waits for it.
//!
//! Training blocks in [`Map::map`], on the thread that tells observers. So the fleet that training maps with is wrapped: what happens to the fleet
//! meanwhile is reported on that thread too, while it happens, in the order in which the thread hears of it.

use std::cell::RefCell;
use std::sync::Arc;

use anyhow::Result;
use fleet::{FleetError, Map, MapReport, Stage, Tasks};
use grammaton::work::task::{Answer, ContentHash, Task};
use scheduler::Failure;

use crate::events::{Observer, RunEvent};

/// A fleet whose events go to the observer of training. A reference to it is an observer.
pub struct Stream<'a> {
    fleet: &'a dyn Map,
    observer: RefCell<&'a mut dyn Observer>,
    /// The first error of an observer of an event of the fleet; the next event of training returns it.
    failed: RefCell<Option<anyhow::Error>>,
    /// Shards of a task that no worker could compute, or for which this process lacks memory.
    given_up: RefCell<Vec<ContentHash>>,
}

impl<'a> Stream<'a> {
    /// Tells `observer` of the fleet, and of what training tells.
    pub fn new(fleet: &'a dyn Map, observer: &'a mut dyn Observer) -> Stream<'a> {
        Stream {
            fleet,
            observer: RefCell::new(observer),
            failed: RefCell::default(),
            given_up: RefCell::default(),
        }
    }

    /// Shards of the task that ended a batch since no worker could compute it, or since this process lacks memory.
    pub fn given_up(&self) -> Vec<ContentHash> {
        self.given_up.borrow().clone()
    }
}

impl Observer for &Stream<'_> {
    fn on(&mut self, event: &RunEvent) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)?;
        self.observer.borrow_mut().on(event)
    }

    fn shows_snapshots(&self) -> bool {
        self.observer.borrow().shows_snapshots()
    }

    fn shows_memory(&self) -> bool {
        self.observer.borrow().shows_memory()
    }
}

impl Map for Stream<'_> {
    fn map(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        let mapped = self.fleet.map_with_events(stage, tasks.clone(), each, &mut |event| {
            if let Err(error) = self.observer.borrow_mut().on(&RunEvent::Fleet(event.clone())) {
                self.failed.borrow_mut().get_or_insert(error);
            }
        });
        if let Err(FleetError::Batch { failure, .. }) = &mapped
            && let Failure::GivenUp { task, .. } | Failure::Task { task, lacks_memory: true, .. } = failure
        {
            let made = (task.index() < tasks.len()).then(|| tasks.make(task.index()).ok()).flatten();
            let shards = made.iter().flat_map(Task::shards).map(|shard| shard.hash);
            self.given_up.replace(shards.collect());
        }
        mapped
    }

    fn check(&self) -> Result<(), FleetError> {
        self.fleet.check()
    }

    fn audit_all(&self) -> bool {
        self.fleet.audit_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleet::{FleetEvent, Inline};

    /// A fleet of one thread of which a worker is lost in every batch.
    struct Losing;

    impl Map for Losing {
        fn map(
            &self,
            stage: Stage,
            tasks: Arc<dyn Tasks>,
            each: &mut dyn FnMut(usize, Answer),
        ) -> Result<MapReport, FleetError> {
            Inline::default().map(stage, tasks, each)
        }

        fn map_with_events(
            &self,
            stage: Stage,
            tasks: Arc<dyn Tasks>,
            each: &mut dyn FnMut(usize, Answer),
            hear: &mut dyn FnMut(FleetEvent),
        ) -> Result<MapReport, FleetError> {
            let name = format!("worker of {stage}");
            hear(FleetEvent::WorkerLost { name, cause: scheduler::Cause::Left, workers: 0 });
            self.map(stage, tasks, each)
        }
    }

    /// Names of the events; refuses workers that are lost if it should.
    struct Recorder {
        events: Vec<String>,
        refuses: bool,
    }

    impl Observer for Recorder {
        fn on(&mut self, event: &RunEvent) -> Result<()> {
            match event {
                RunEvent::Fleet(FleetEvent::WorkerLost { name, .. }) => {
                    self.events.push(name.clone());
                    anyhow::ensure!(!self.refuses, "the disk is full");
                }
                RunEvent::Notice(text) => self.events.push((*text).to_owned()),
                _ => {}
            }
            Ok(())
        }
    }

    fn tell(refuses: bool) -> (Vec<String>, Result<()>) {
        let mut recorder = Recorder { events: Vec::new(), refuses };
        let stream = Stream::new(&Losing, &mut recorder);
        let mut observer = &stream;
        observer.on(&RunEvent::Notice("before".to_owned())).unwrap();
        for stage in [Stage::Cover, Stage::Index] {
            let tasks: Arc<dyn Tasks> = Arc::new(Vec::new());
            stream.map(stage, tasks, &mut |_, _| {}).unwrap();
        }
        let after = observer.on(&RunEvent::Notice("after".to_owned()));
        (recorder.events, after)
    }

    #[test]
    fn events_of_fleet_and_training_are_told_in_their_order() {
        let (events, after) = tell(false);
        assert_eq!(events, ["before", "worker of cover", "worker of index", "after"]);
        assert!(after.is_ok());
    }

    #[test]
    fn an_observer_that_fails_at_an_event_of_the_fleet_ends_the_run_at_the_next_event() {
        let (events, after) = tell(true);
        assert_eq!(events, ["before", "worker of cover", "worker of index"]);
        assert_eq!(after.unwrap_err().to_string(), "the disk is full");
    }
}
