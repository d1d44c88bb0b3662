//! Signals to stop this process: Ctrl-C and SIGTERM.
//!
//! [`Signals`] waits for them. [`Stopper`] stops a training run: the first signal stops it cleanly, the second one ends the
//! process at once. [`end_first_process`] is for all other commands in a container.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::{Context, Result};
use basics::streams::tell;
use fleet::Handle;
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tracing::info;

/// A signal to stop this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// SIGINT, as Ctrl-C sends it.
    Interrupt,
    /// SIGTERM, as `timeout`, Kubernetes and Slurm send it.
    Terminate,
}

impl Signal {
    /// Exit code of a process that the signal ended, by the convention of shells: 128 plus its number.
    pub fn exit_code(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Signal::Interrupt => "SIGINT",
            Signal::Terminate => "SIGTERM",
        }
    }
}

/// What ends the first process of a container until a command listens for signals.
static FIRST: Mutex<Option<First>> = Mutex::new(None);

struct First {
    /// Asks it to end.
    end: oneshot::Sender<()>,
    /// Closed when it has.
    ended: mpsc::Receiver<()>,
}

/// The signals of this process, from the moment of listening.
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// Received and left alone: a write beyond the limit of file sizes fails then, as one to a full disk, and does not end the process.
    _file_size: tokio::signal::unix::Signal,
}

impl Signals {
    /// Starts to listen; must be called within a runtime.
    pub fn listen() -> Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        let of = |kind| signal(kind).context("cannot listen for signals");
        let signals = Signals {
            interrupt: of(SignalKind::interrupt())?,
            terminate: of(SignalKind::terminate())?,
            _file_size: of(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        };
        // Not before, and it looks for signals once more: one that came in between would be lost.
        if let Some(First { end, ended }) = FIRST.lock().take()
            && end.send(()).is_ok()
        {
            let _ = ended.recv();
        }
        Ok(signals)
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

/// Makes signals end the first process of a container, which ignores signals that it does not handle. They do so until a command
/// listens with [`Signals`]; other processes are ended by the system.
pub fn end_first_process() -> Result<()> {
    if std::process::id() != 1 {
        return Ok(());
    }
    let (runtime, mut signals) = listen_alone()?;
    let (end, asked) = oneshot::channel();
    let (ends, ended) = mpsc::channel();
    *FIRST.lock() = Some(First { end, ended });
    let listen = async move {
        tokio::select! {
            biased;
            signal = signals.next() => std::process::exit(signal.exit_code().into()),
            _ = asked => drop(ends),
        }
    };
    on_a_thread(runtime, listen)
}

/// The signals, and a runtime that is for them alone.
fn listen_alone() -> Result<(Runtime, Signals)> {
    let runtime = Builder::new_current_thread().enable_all().build().context("cannot listen for signals")?;
    let signals = runtime.block_on(async { Signals::listen() })?;
    Ok((runtime, signals))
}

/// Runs `future` on a thread of its own.
fn on_a_thread(runtime: Runtime, future: impl Future<Output = ()> + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(move || runtime.block_on(future)).context("cannot listen for signals")?;
    Ok(())
}

/// Stops a training run when a signal arrives. Clones share their state.
#[derive(Clone)]
pub struct Stopper(Arc<Mutex<Phase>>);

/// ```text
/// Reading ──train_on──> Training ──signal──> Stopping
///    │ signal: the process ends                 │ signal: the process ends
/// ```
enum Phase {
    /// A run that has not written anything yet.
    Reading {
        /// Message to print if the run stops here.
        farewell: String,
    },
    /// The run has begun; a signal cancels its handle.
    Training(Handle),
    /// A signal has arrived.
    Stopping(Signal),
}

/// Action on a signal.
#[derive(PartialEq, Eq, Debug)]
enum Action {
    /// End the process, with this line if the run prints none.
    End(Option<String>),
    /// Wait for the run to stop.
    Wait,
}

/// Time within which a second signal is the same request: `timeout` sends one to the process and one to its group.
const SAME: Duration = Duration::from_millis(500);

impl Stopper {
    /// Listens for signals on a separate thread. Until [`Stopper::train_on`], a signal ends the process with the line `farewell`.
    pub fn start(farewell: String) -> Result<Stopper> {
        let stopper = Stopper(Arc::new(Mutex::new(Phase::Reading { farewell })));
        let (runtime, mut signals) = listen_alone()?;
        let heard = stopper.clone();
        let listen = async move {
            loop {
                let signal = signals.next().await;
                info!(signal = signal.name(), "stopping");
                if let Action::End(farewell) = heard.hear(signal) {
                    farewell.iter().for_each(|line| tell(line));
                    std::process::exit(signal.exit_code().into());
                }
                let repeats = async {
                    loop {
                        signals.next().await;
                    }
                };
                // The future never completes, so this returns at the timeout.
                let _ = tokio::time::timeout(SAME, repeats).await;
            }
        };
        on_a_thread(runtime, listen)?;
        Ok(stopper)
    }

    /// From now on a signal cancels `handle`, and the run reports how it stopped.
    pub fn train_on(&self, handle: Handle) {
        *self.phase() = Phase::Training(handle);
    }

    /// The signal that stopped the run, if one did.
    pub fn signal(&self) -> Option<Signal> {
        match *self.phase() {
            Phase::Stopping(signal) => Some(signal),
            Phase::Reading { .. } | Phase::Training(_) => None,
        }
    }

    fn hear(&self, signal: Signal) -> Action {
        let mut phase = self.phase();
        match &mut *phase {
            Phase::Reading { farewell } => Action::End(Some(std::mem::take(farewell))),
            Phase::Stopping(_) => Action::End(None),
            Phase::Training(handle) => {
                handle.cancel();
                *phase = Phase::Stopping(signal);
                Action::Wait
            }
        }
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleet::{Fleet, FleetConfig};

    #[test]
    fn the_first_signal_stops_a_run_and_the_second_ends_the_process() {
        let fleet = Fleet::start(FleetConfig { local_workers: 1, ..FleetConfig::default() }).unwrap();
        let stopper = Stopper(Arc::new(Mutex::new(Phase::Reading { farewell: "stopped".to_owned() })));
        assert_eq!(stopper.hear(Signal::Interrupt), Action::End(Some("stopped".to_owned())));
        let handle = fleet.handle();
        stopper.train_on(handle.clone());
        assert_eq!((stopper.signal(), handle.is_cancelled()), (None, false));
        assert_eq!(stopper.hear(Signal::Terminate), Action::Wait);
        assert_eq!((stopper.signal(), handle.is_cancelled()), (Some(Signal::Terminate), true));
        assert_eq!(stopper.hear(Signal::Interrupt), Action::End(None));
        fleet.shutdown();
    }

    #[test]
    fn exit_codes_are_those_of_shells() {
        assert_eq!([Signal::Interrupt, Signal::Terminate].map(Signal::exit_code), [130, 143]);
    }
}
