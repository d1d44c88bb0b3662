//! A training run of this process, on threads of its own.
//!
//! ```text
//! Reading ──> Training <──pause, resume──> Paused
//!                │
//!                └──> Finished, Failed, or Stopped ──resume──> Reading
//! ```
//!
//! The run's thread trains and appends each round; calls from Python look at what is there, or wait for more without the interpreter lock.
//! A run that is dropped is stopped. Threads do not survive a fork, so a run belongs to the process that started it.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, ThreadId};
use std::time::Duration;

use anyhow::{Context as _, Result};
use fleet::{FleetConfig, Handle, MEMORY};
use parking_lot::{Condvar, Mutex, MutexGuard};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use training::events::{Observer, RunEvent};
use training::job::{Job, Point};
use training::metrics::RoundMetrics;
use training::run::{self, Earlier};
use training::train::group::Inputs;

use crate::arguments;
use crate::error::{Stopped, exception};
use crate::logging;
use crate::wait::{LOOK, detached, interpreter_ends};

/// Longest wait for a run that is stopped, in which it writes its checkpoint.
const STOP_WITHIN: Duration = Duration::from_secs(30);
/// Stack of a run's thread, as large as that of a main thread.
const STACK: usize = 8 << 20;
/// Logger of runs: `grammaton.run`.
const LOG: &str = "run";

/// A training run.
#[pyclass(frozen, module = "grammaton._lib")]
pub struct Run {
    shared: Arc<Shared>,
    /// The object that removes a temporary output folder when it is used no more.
    folder: Option<Py<PyAny>>,
    pid: u32,
}

/// What a run's thread and its callers have in common.
struct Shared {
    job: Job,
    /// Threads that compute, and memory.
    options: Threads,
    /// Called with each round, as JSON, on the run's thread.
    callback: Option<Py<PyAny>>,
    state: Mutex<State>,
    changed: Condvar,
}

/// The threads of a run.
struct Threads {
    /// Their number; none for one for each core.
    n: Option<u16>,
    /// Bytes for forests.
    memory: usize,
}

struct State {
    stage: Stage,
    /// Rounds so far, each as JSON.
    rounds: Vec<String>,
    /// What the user should know, in order.
    notices: Vec<String>,
    /// Whether the run is to wait after its next round.
    is_paused: bool,
    /// Whether it is to stop.
    is_stopped: bool,
    /// The way to stop it; none before the fleet has started.
    handle: Option<Handle>,
    /// The run's thread, on which the callback is called; none if the run is over.
    thread: Option<ThreadId>,
    /// An exception of the callback.
    raised: Option<PyErr>,
}

enum Stage {
    /// Reads its files.
    Reading,
    /// Prepares, trains, decodes, writes.
    Training,
    /// Waits after a round.
    Paused,
    /// Its results are written; the summary as JSON.
    Finished(String),
    /// Was stopped; what is kept of it.
    Stopped(String),
    /// Has failed.
    Failed(PyErr),
}

impl Stage {
    fn name(&self) -> &'static str {
        match self {
            Stage::Reading => "reading",
            Stage::Training => "training",
            Stage::Paused => "paused",
            Stage::Finished(_) => "finished",
            Stage::Stopped(_) => "stopped",
            Stage::Failed(_) => "failed",
        }
    }

    fn is_over(&self) -> bool {
        matches!(self, Stage::Finished(_) | Stage::Stopped(_) | Stage::Failed(_))
    }

    fn goes_on(&self) -> bool {
        matches!(self, Stage::Reading | Stage::Training)
    }
}

/// The process in which a run was first started; 0: none yet.
static FIRST: AtomicU32 = AtomicU32::new(0);
/// The runs of that process.
static RUNS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

#[pymethods]
impl Run {
    /// Checks a job and starts to train it. The job is given by its keys, or by the path of its file. Returns once corpus and grammar are read.
    #[staticmethod]
    #[pyo3(signature = (keys, *, file = None, earlier = "refuse", workers = None, memory = None, callback = None, folder = None))]
    #[expect(clippy::too_many_arguments, reason = "those of `grammaton.train`")]
    fn start(
        py: Python<'_>,
        keys: &Bound<'_, PyDict>,
        file: Option<PathBuf>,
        earlier: &str,
        workers: Option<i64>,
        memory: Option<i64>,
        callback: Option<Py<PyAny>>,
        folder: Option<Py<PyAny>>,
    ) -> PyResult<Run> {
        let workers = arguments::count("workers", workers, 1..=u16::MAX)?;
        let memory = arguments::count("memory", memory, 0..=u32::MAX)?;
        let pid = process::id();
        let first = FIRST.compare_exchange(0, pid, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_err_and(|first| first != pid) {
            return Err(PyRuntimeError::new_err(
                "this process was forked from one that has trained, whose threads it lacks; start processes with \
                 multiprocessing.get_context(\"spawn\"), or fork before the first training",
            ));
        }
        let job = match file {
            Some(file) => Job::load(&file, &[]).map_err(|error| exception(py, error.into()))?,
            None => arguments::job(keys)?,
        };
        let earlier = match earlier {
            "resume" => Earlier::Resume,
            "overwrite" => Earlier::Overwrite,
            _ => Earlier::Refuse,
        };
        logging::start(py)?;
        let memory = memory.map_or(MEMORY, |mebibytes| (mebibytes as usize) << 20);
        let options = Threads { n: workers, memory };
        let state = State {
            stage: Stage::Reading,
            rounds: Vec::new(),
            notices: Vec::new(),
            is_paused: false,
            is_stopped: false,
            handle: None,
            thread: None,
            raised: None,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let shared = Arc::new(Shared { job, options, callback, state, changed });
        let mut runs = RUNS.lock();
        runs.retain(|run| run.strong_count() > 0);
        runs.push(Arc::downgrade(&shared));
        drop(runs);
        shared.spawn(earlier, folder.as_ref().map(|folder| folder.clone_ref(py)))?;
        let run = Run { shared, folder, pid };
        run.wait(py, |state| !matches!(state.stage, Stage::Reading))?;
        run.raise(py)?;
        Ok(run)
    }

    /// The state: `reading`, `training`, `paused`, `finished`, `stopped` or `failed`.
    #[getter]
    fn state(&self) -> PyResult<&'static str> {
        Ok(self.look()?.stage.name())
    }

    /// The output folder.
    #[getter]
    fn dir(&self) -> PathBuf {
        self.shared.job.output.dir.clone()
    }

    /// Number of rounds of all runs of the job, if none ends before.
    #[getter]
    fn max_rounds(&self) -> usize {
        let of_point = |point: &Point| point.inference.restarts * point.inference.max_rounds;
        self.shared.job.points.iter().map(of_point).sum()
    }

    /// The job as a job file.
    #[getter]
    fn job(&self) -> String {
        self.shared.job.to_toml()
    }

    /// Notices so far.
    #[getter]
    fn notices(&self) -> PyResult<Vec<String>> {
        Ok(self.look()?.notices.clone())
    }

    /// The rounds so far from number `first` on, counted from 0, each as JSON.
    fn rounds(&self, first: usize) -> PyResult<Vec<String>> {
        Ok(self.look()?.rounds.iter().skip(first).cloned().collect())
    }

    /// Waits for round number `at`, counted from 0. `None` if the run ends, or is paused, before it.
    fn round(&self, py: Python<'_>, at: usize) -> PyResult<Option<String>> {
        drop(self.look()?);
        self.wait(py, |state| state.rounds.len() > at || !state.stage.goes_on())?;
        let found = self.look()?.rounds.get(at).cloned();
        if found.is_none() {
            self.raise(py)?;
        }
        Ok(found)
    }

    /// Waits for the end, and returns the summary as JSON.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        drop(self.look()?);
        self.wait(py, |state| !state.stage.goes_on())?;
        self.raise(py)?;
        match &self.look()?.stage {
            Stage::Finished(summary) => Ok(summary.clone()),
            Stage::Stopped(message) => Err(Stopped::new_err(message.clone())),
            stage => {
                Err(PyRuntimeError::new_err(format!("the run is {}; call resume() first", stage.name())))
            }
        }
    }

    /// Lets the run wait after its present round.
    fn pause(&self) -> PyResult<()> {
        self.look()?.is_paused = true;
        Ok(())
    }

    /// Lets a paused run go on, or one that was stopped, which goes on from its checkpoint.
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.look()?;
        state.is_paused = false;
        match state.stage {
            Stage::Paused => {
                state.stage = Stage::Training;
                self.shared.changed.notify_all();
            }
            Stage::Stopped(_) => {
                (state.stage, state.is_stopped) = (Stage::Reading, false);
                drop(state);
                self.shared
                    .spawn(Earlier::Resume, self.folder.as_ref().map(|folder| folder.clone_ref(py)))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Stops the run, and waits until its checkpoint is written; a callback, for which the run waits, does not. Does nothing if it is over.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        drop(self.look()?);
        self.shared.stop();
        if self.is_callback() { Ok(()) } else { self.wait(py, |state| state.stage.is_over()) }
    }
}

/// Stops all runs of this process when the interpreter ends, and waits until their checkpoints are written.
#[pyfunction]
pub fn stop_all(py: Python<'_>) {
    interpreter_ends();
    if FIRST.load(Ordering::SeqCst) != process::id() {
        return; // there are none, or they are in the parent
    }
    // The lock is free again before anything waits.
    let runs: Vec<Arc<Shared>> = RUNS.lock().iter().filter_map(Weak::upgrade).collect();
    detached(py, || {
        runs.iter().for_each(|run| run.stop());
        for run in runs {
            run.wait(STOP_WITHIN, &|state| state.stage.is_over());
        }
    });
}

impl Run {
    /// The state, in the process of the run.
    fn look(&self) -> PyResult<MutexGuard<'_, State>> {
        if self.pid == process::id() {
            Ok(self.shared.state())
        } else {
            Err(PyRuntimeError::new_err(
                "this run belongs to the process from which this one was forked; use it there",
            ))
        }
    }

    /// Waits until `is_there` holds. If a signal handler raises, as at Ctrl-C, the run is stopped; a second one ends the waiting for its checkpoint.
    fn wait(&self, py: Python<'_>, is_there: impl Fn(&State) -> bool + Sync) -> PyResult<()> {
        if self.is_callback() && !is_there(&self.shared.state()) {
            return Err(PyRuntimeError::new_err(
                "a callback cannot wait for its own run, which waits for the callback; call stop() or pause() in it, and wait elsewhere",
            ));
        }
        while !detached(py, || self.shared.wait(LOOK, &is_there)) {
            let Err(raised) = py.check_signals() else { continue };
            self.shared.stop();
            // A run that still reads its files has nothing to keep.
            let is_over = |state: &State| state.stage.is_over() || state.handle.is_none();
            for _ in 0..STOP_WITHIN.div_duration_f64(LOOK) as usize {
                if detached(py, || self.shared.wait(LOOK, &is_over)) || py.check_signals().is_err() {
                    break;
                }
            }
            return Err(raised);
        }
        Ok(())
    }

    /// Whether the caller is the run's callback.
    fn is_callback(&self) -> bool {
        self.shared.state().thread == Some(thread::current().id())
    }

    /// Raises the error of a run that has failed.
    fn raise(&self, py: Python<'_>) -> PyResult<()> {
        match &self.look()?.stage {
            Stage::Failed(error) => Err(error.clone_ref(py)),
            _ => Ok(()),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.pid == process::id() {
            self.shared.stop();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Waits at most so long; whether `is_there` holds.
    fn wait(&self, time: Duration, is_there: &dyn Fn(&State) -> bool) -> bool {
        let mut state = self.state();
        self.changed.wait_while_for(&mut state, |state| !is_there(state), time);
        is_there(&state)
    }

    fn stop(&self) {
        let mut state = self.state();
        state.is_stopped = true;
        if let Some(handle) = &state.handle {
            handle.cancel();
        }
        self.changed.notify_all();
    }

    /// Trains on a new thread, which writes to `folder` and keeps it until it has ended.
    fn spawn(self: &Arc<Shared>, earlier: Earlier, folder: Option<Py<PyAny>>) -> std::io::Result<()> {
        let shared = self.clone();
        let thread = thread::Builder::new().name("grammaton-run".into()).stack_size(STACK);
        let body = move || {
            shared.state().thread = Some(thread::current().id());
            let trained = catch_unwind(AssertUnwindSafe(|| shared.train(earlier)));
            // With the interpreter lock, so that the temporary folder of a run that was dropped is removed at once.
            Python::try_attach(|_| drop(folder));
            shared.end(trained.unwrap_or_else(|_| {
                Err(anyhow::anyhow!("internal error: the run panicked, as printed above; please report it"))
            }));
        };
        thread.spawn(body).map(drop)
    }

    /// Trains the job, and returns the summary as JSON.
    fn train(&self, earlier: Earlier) -> Result<String> {
        let run = run::Run::open(&self.job, Path::new(""), earlier)?;
        if earlier == Earlier::Resume && run.is_finished()? {
            return self.earlier_result();
        }
        let inputs = Inputs::load(&self.job)?;
        let own =
            run.start_fleet(FleetConfig::local(self.options.n, self.options.memory), self.options.memory)?;
        let handle = own.fleet().handle();
        let mut state = self.state();
        if state.is_stopped {
            handle.cancel();
        }
        state.handle = Some(handle);
        drop(state);
        let summary = run.complete(inputs, own, &mut Recorder(self))?;
        Ok(serde_json::to_string(&summary)?)
    }

    /// The result that is in the folder already.
    fn earlier_result(&self) -> Result<String> {
        let read = |name: &str| {
            let path = self.job.output.dir.join(name);
            fs::read_to_string(&path).with_context(|| format!("{}: cannot read the result", path.display()))
        };
        self.state().rounds = read("metrics.jsonl")?.lines().map(str::to_owned).collect();
        read("summary.json")
    }

    /// Takes note of how the run ended.
    fn end(&self, trained: Result<String>) {
        let raised = self.state().raised.take();
        let stage = match trained {
            Ok(summary) => Stage::Finished(summary),
            Err(error) if error.is::<training::train::stopped::Stopped>() => {
                Stage::Stopped(error.to_string().replace("--resume", "resume()"))
            }
            Err(error) => {
                let text = format!("{error:#}");
                // When the interpreter ends, the type is not asked for any more.
                let error = Python::try_attach(|py| exception(py, error));
                Stage::Failed(error.unwrap_or_else(|| PyRuntimeError::new_err(text)))
            }
        };
        let mut state = self.state();
        state.stage = match raised {
            Some(raised) => Stage::Failed(raised),
            None => stage,
        };
        (state.handle, state.thread) = (None, None);
        self.changed.notify_all();
    }
}

/// Records the events of a run, and lets it wait while it is paused.
struct Recorder<'a>(&'a Shared);

impl Observer for Recorder<'_> {
    fn on(&mut self, event: &RunEvent) -> Result<()> {
        let Recorder(shared) = *self;
        match event {
            RunEvent::Started(_) => {
                shared.state().stage = Stage::Training;
                shared.changed.notify_all();
            }
            RunEvent::Prepared { earlier } => {
                let rounds = earlier.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
                shared.state().rounds = rounds;
            }
            RunEvent::RoundFinished(round) => shared.round(round)?,
            RunEvent::PhaseBegun(phase) => tracing::info!(target: LOG, "{phase:?}"),
            RunEvent::Notice(text) => {
                tracing::info!(target: LOG, "{text}");
                shared.state().notices.push(text.to_owned());
            }
            RunEvent::CheckpointFailed(error) => {
                tracing::warn!(target: LOG, "a checkpoint cannot be written: {error:#}");
            }
            _ => {}
        }
        Ok(())
    }
}

impl Shared {
    fn round(&self, round: &RoundMetrics) -> Result<()> {
        let round = serde_json::to_string(round)?;
        let called = self
            .callback
            .as_ref()
            .and_then(|callback| Python::try_attach(|py| callback.call1(py, (&round,)).map(drop)));
        let mut state = self.state();
        state.rounds.push(round);
        self.changed.notify_all();
        if let Some(Err(raised)) = called {
            // The run stops, so that its rounds are kept; also if it is to be paused.
            state.raised.get_or_insert(raised);
            state.is_stopped = true;
            if let Some(handle) = &state.handle {
                handle.cancel();
            }
        }
        while state.is_paused && !state.is_stopped {
            state.stage = Stage::Paused;
            self.changed.notify_all();
            self.changed.wait(&mut state);
        }
        if matches!(state.stage, Stage::Paused) {
            state.stage = Stage::Training;
        }
        Ok(())
    }
}
