//! Law: the estimates of `grammaton plan` that do not depend on time match a real fleet.

use std::cell::RefCell;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use cli::commands::plan::probe::measure;
use fleet::forecast::{Cluster, TaskLoad, forecast};
use fleet::{Fleet, FleetConfig, FleetError, Listen, Map, MapReport, Stage, Tasks};
use grammaton::work::task::Answer;
use grammaton_tests::folder::{Folder, examples};
use training::events::All;
use training::job::Job;
use training::train::checkpoint::Checkpoints;
use training::train::group::Inputs;
use training::train::train;
use worker::WorkerConfig;

/// A fleet, with the reports of its rounds.
struct Watched(Fleet, RefCell<Vec<MapReport>>);

impl Map for Watched {
    fn map(
        &self,
        stage: Stage,
        tasks: Arc<dyn Tasks>,
        each: &mut dyn FnMut(usize, Answer),
    ) -> Result<MapReport, FleetError> {
        let report = Map::map(&self.0, stage, tasks, each)?;
        if let Stage::Round { .. } = stage {
            self.1.borrow_mut().push(report.clone());
        }
        Ok(report)
    }
}

/// Trains over loopback with workers of one thread; returns the reports of rounds that had as many tasks as the round before: with other groups
/// of shards, tasks do not share weights yet.
fn trained(job: &Job, n_workers: usize) -> Vec<MapReport> {
    let listen = Listen::at("127.0.0.1:0".parse().unwrap());
    let config = FleetConfig {
        local_workers: 0,
        listen: Some(listen),
        min_members: n_workers,
        ..FleetConfig::default()
    };
    let fleet = Fleet::start(config).unwrap();
    let url = format!("http://{}", fleet.address().unwrap());
    let worker = |number: usize| {
        let (coordinator, name) = (url.clone(), format!("worker {number}"));
        let config = WorkerConfig { coordinator, name, threads: 1, ..WorkerConfig::default() };
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(worker::run(config, std::future::pending()))
        })
    };
    let workers: Vec<_> = (0..n_workers).map(worker).collect();
    let watched = Watched(fleet, RefCell::default());
    train(job, &Inputs::load(job).unwrap(), &watched, &mut Checkpoints::none(), &mut All(Vec::new()))
        .unwrap();
    let Watched(fleet, reports) = watched;
    fleet.shutdown();
    workers.into_iter().for_each(|worker| worker.join().unwrap().unwrap());
    let reports = reports.into_inner();
    let n_tasks = |report: &MapReport| report.busy_by_task.len();
    let pairs = reports.windows(2).filter(|pair| n_tasks(&pair[0]) == n_tasks(&pair[1]));
    pairs.map(|pair| pair[1].clone()).collect()
}

fn is_near(found: u64, estimated: u64) -> bool {
    found.abs_diff(estimated) * 50 <= estimated
}

#[test]
fn the_bytes_of_a_round_are_those_of_real_workers() {
    let corpus = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let job = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\nshard_symbols = 2048\n\
               [inference]\ntruncation = 500\nmax_rounds = 6\ntolerance = 0\nselection = \"sorted\"\n\
               [output]\nscore_every = 0\n";
    let folder = Folder::new(&[("job.toml", job), ("corpus.txt", &corpus)]);
    let job = Job::load(&folder.path("job.toml"), &[]).unwrap();
    for workers in [1, 2] {
        // How many shards a task is on depends on the time of a shard, so there are loads of several sizes.
        let fleets = [1, 2, 4, 8, 16, 32, 64].map(|slots| [workers, slots]);
        let (loads, measured) = measure(&job, &fleets, 1.0).unwrap();
        assert!(measured.rounds == 5, "{measured:?}");
        let mut n_compared = 0;
        for report in trained(&job, workers) {
            let n_tasks = report.busy_by_task.len();
            let Some(load) = loads.iter().find(|load| load.tasks.len() == n_tasks) else { continue };
            n_compared += 1;
            let bytes = |of: fn(&TaskLoad) -> u64| load.tasks.iter().map(of).sum::<u64>();
            let lease_bytes = bytes(|task| task.lease.bytes);
            let shard_bytes = bytes(|task| task.shard.bytes);
            let latency = Duration::from_micros(50);
            let cluster = Cluster { workers, threads: 1, bandwidth: 1e9, latency, cores: 2, cache: 1 << 30 };
            let estimated = forecast(load, n_tasks, &cluster, 1).round;
            // No backups, which depend on time.
            let (sent, received) = (report.bytes_sent, report.bytes_received);
            let of_leases = |bytes: u64| bytes * report.attempts as u64 / n_tasks as u64;
            let case = format!("{workers} workers, {estimated:?}: {report:?}");
            if workers == 1 {
                assert!(report.attempts == n_tasks && is_near(sent, estimated.bytes_down), "{case}");
            }
            // Assignment depends on time: in the worst case every shard moves once.
            let of_worker = measured.once_bytes + load.every_round.bytes;
            let most = of_leases(lease_bytes + shard_bytes) + workers as u64 * of_worker;
            let least = of_leases(lease_bytes);
            assert!(sent >= least - least / 50 && sent <= most + most / 50, "{case}");
            assert!(received <= of_leases(estimated.bytes_up) + estimated.bytes_up / 50, "{case}");
            assert!(received >= estimated.bytes_up - estimated.bytes_up / 50, "{case}");
        }
        assert!(n_compared > 0, "{workers} workers: {:?}", loads.iter().map(|load| load.tasks.len()));
    }
}
