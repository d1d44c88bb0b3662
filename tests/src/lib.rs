//! Harness of the system tests: processes that never outlive their test, and tasks that every fleet answers alike.
//!
//! Tests do not sleep to wait for other processes: [`eventually`] polls, with a timeout.

pub mod browser;
pub mod certificates;
pub mod cluster;
pub mod folder;
pub mod kills;

pub mod lan;
pub mod requirement;
pub mod s3;
pub mod serving;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use grammaton::data::Sentence;
use grammaton::grammar::groups::Groups;
use grammaton::grammar::lexicon::{Lexicon, StickStrings};
use grammaton::grammar::{Grammar, SymbolId};
use grammaton::num::Wide;
use grammaton::work::engine::ComputeError;
use grammaton::work::shard::Shard;
use grammaton::work::task::{
    Answer, Collapse, Collapsed, Expectation, Language, Named, ShardState, Task, TaskWeights, Work,
};
use parking_lot::Mutex;

/// Timeout of events that should happen at once, for a busy machine.
pub const SOON: Duration = Duration::from_secs(180);

/// Path of a binary that the same `cargo test` built.
pub fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let target = test.ancestors().nth(2).expect("tests lie in target/<profile>/deps");
    let path = target.join(name);
    assert!(path.is_file(), "{} is not built: run `cargo test --workspace`", path.display());
    path
}

/// A process that is killed when it goes out of scope.
pub struct Process {
    child: Child,
    log: Arc<Mutex<String>>,
    /// Reads the log; `None` once it has read all of it.
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts `command`; its standard error is collected.
    pub fn spawn(command: &mut Command) -> Process {
        Process::start(command, Stdio::null()).0
    }

    /// Starts `command` with its standard output going to `file`.
    pub fn spawn_to(command: &mut Command, file: File) -> Process {
        Process::start(command, file.into()).0
    }

    /// Starts `command`; returns the lines of its standard output.
    pub fn spawn_read(command: &mut Command) -> (Process, Lines) {
        let (process, out) = Process::start(command, Stdio::piped());
        (process, Lines::of(out.expect("it is piped")))
    }

    fn start(command: &mut Command, out: Stdio) -> (Process, Option<ChildStdout>) {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, sink) = (BufReader::new(child.stderr.take().expect("it is piped")), log.clone());
        let reader = std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                sink.lock().push_str(&format!("{line}\n"));
            }
        });
        let out = child.stdout.take();
        (Process { child, log, reader: Some(reader) }, out)
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "cannot send SIG{name}");
    }

    /// Kills it at once, and waits until it is gone with its locks.
    pub fn kill(&mut self) {
        self.child.kill().expect("one's own child can be killed");
        self.child.wait().expect("one's own child can be waited for");
    }

    /// Exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("one's own child can be waited for")
    }

    /// Waits for the end of the process with a timeout; then the log is complete.
    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        let log = self.log.clone();
        eventually(&|| log.lock().clone(), || {
            status = self.ended();
            status.is_some()
        });
        if let Some(reader) = self.reader.take() {
            reader.join().expect("reading does not fail");
        }
        status.expect("it was waited for")
    }

    /// Standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines of the standard output of a process. No lines are read ahead, so that the process blocks when the pipe is full.
pub struct Lines(Receiver<String>);

/// Result of waiting for a line.
#[derive(PartialEq, Eq, Debug)]
pub enum Heard {
    /// A line.
    Line(String),
    /// No line within the time.
    Nothing,
    /// End of the output.
    End,
}

impl Lines {
    fn of(out: impl Read + Send + 'static) -> Lines {
        let (sender, receiver) = sync_channel(0);
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Lines(receiver)
    }

    /// Next line, `None` at the end; panics after a timeout.
    pub fn next(&self) -> Option<String> {
        match self.poll(SOON) {
            Heard::Line(line) => Some(line),
            Heard::End => None,
            Heard::Nothing => panic!("no line within {SOON:?}"),
        }
    }

    /// Next line within a time.
    pub fn poll(&self, within: Duration) -> Heard {
        match self.0.recv_timeout(within) {
            Ok(line) => Heard::Line(line),
            Err(RecvTimeoutError::Disconnected) => Heard::End,
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
        }
    }
}

/// A proxy between workers and a coordinator, whose connections can be cut.
pub struct Network {
    address: SocketAddr,
    wires: Arc<Mutex<Vec<TcpStream>>>,
}

impl Network {
    /// Starts a proxy to `coordinator` on a free port.
    pub fn to(coordinator: SocketAddr) -> Network {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let wires = Arc::new(Mutex::new(Vec::new()));
        let kept = wires.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(coordinator) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let clones = (from.try_clone(), to.try_clone());
                    let (Ok(mut from), Ok(mut to)) = clones else { continue };
                    std::thread::spawn(move || {
                        // When either end closes, the other one is closed too.
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                kept.lock().extend([near, far]);
            }
        });
        Network { address, wires }
    }

    /// URL for workers.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Cuts all connections; new ones are possible.
    pub fn cut(&self) {
        for wire in self.wires.lock().drain(..) {
            // The connection may have ended already.
            let _ = wire.shutdown(Shutdown::Both);
        }
    }
}

/// Waits until `condition` holds; panics with `state` after a timeout.
pub fn eventually(state: &dyn Fn() -> String, mut condition: impl FnMut() -> bool) {
    let begun = clock();
    while !condition() {
        assert!(begun.elapsed() < SOON, "did not happen within {SOON:?}: {}", state());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The present moment.
#[expect(clippy::disallowed_methods, reason = "tests have timeouts")]
pub fn clock() -> Instant {
    Instant::now()
}

/// A task for [`echo`] with this duration, `n_weights` weights and a unique answer.
pub fn echo_task(name: u32, duration: Duration, n_weights: usize) -> Task {
    let grammar = tiny_grammar();
    let word = SymbolId(grammar.n_nonterminals + name % 2);
    let mut weights = vec![Wide { mantissa: 1.5, exponent: duration.as_millis() as i64 }];
    weights.resize(n_weights, Wide { mantissa: 1.0 + f64::from(name) / 1e6, exponent: -3 });
    let sentence = Sentence::new(vec![word; 1 + name as usize % 7], 1 + name);
    let lexicon = lexicon_of(&grammar, n_weights);
    Task {
        language: Some(Language { grammar: Named::new(grammar), lexicon }),
        shard: Named::new(Shard::Sentences(vec![sentence])),
        work: Work::Expect { weights: weights.into_iter().collect(), losses: false },
        further: Vec::new(),
    }
}

/// A task for [`echo`] with a sentence that occurs `n` times. The state of its shard has counts for each occurrence: `count`, and the
/// number of the task, so that the states of shards differ.
pub fn echo_pass(name: u32, n: u32, count: f64) -> Task {
    let task = echo_task(name, Duration::ZERO, 5);
    let sentence = Sentence::new(vec![SymbolId(2); 1 + name as usize], n);
    // No more than the uses that a sentence can have.
    let own: Vec<(u32, f64)> = (0..5).map(|param| (param, f64::from(name) / 8.0 + count * PASS)).collect();
    let others = Collapse::Others {
        pseudo: vec![f64::from(name); 5],
        sums: vec![1.0; groups(&task).len()],
        temperature: 1.0,
        shard_state: Named::new(ShardState::Counts(vec![own; n as usize])),
    };
    let shard = Named::new(Shard::Sentences(vec![sentence]));
    Task { shard, work: Work::Collapse(others), ..task }
}

/// What a pass adds to the counts of a state.
const PASS: f64 = 1.0 / 64.0;

/// The multinomials of a task's grammar.
pub fn groups(task: &Task) -> Groups {
    let Language { grammar, lexicon } = task.language.as_ref().expect("the task has a grammar");
    Groups::new(&grammar.value, &lexicon.value)
}

/// A lexicon with which a task can have `n_weights` weights; cached by number.
fn lexicon_of(grammar: &Grammar, n_weights: usize) -> Named<Lexicon> {
    static MADE: Mutex<BTreeMap<usize, Named<Lexicon>>> = Mutex::new(BTreeMap::new());
    let make = || {
        let more = n_weights.saturating_sub(Lexicon::default().space(grammar).n_params());
        let strings = std::iter::repeat_n([SymbolId(grammar.n_nonterminals)], more).collect();
        Named::new(Lexicon { sticks: vec![StickStrings { symbol: SymbolId(1), strings }] })
    };
    MADE.lock().entry(n_weights).or_insert_with(make).clone()
}

/// S → W | W S; W → a | b, adapted.
pub fn tiny_grammar() -> Grammar {
    let text = "1 1 S --> W\n1 1 S --> W S\nW --> a\nW --> b\n";
    grammaton::grammar::syntax::parse(text, "tiny.lt").expect("the text is a grammar").0
}

/// Replaces the engine: waits for the duration of the task, then answers with [`echo_at_once`].
pub fn echo(task: &Task) -> Result<Answer, ComputeError> {
    std::thread::sleep(duration_of(task));
    echo_at_once(task)
}

/// The duration of a task for [`echo`].
pub fn duration_of(task: &Task) -> Duration {
    let Work::Expect { weights: TaskWeights::Touched(weights), .. } = &task.work else {
        return Duration::ZERO;
    };
    weights.in_use().first().map_or(Duration::ZERO, |first| Duration::from_millis(first.exponent as u64))
}

/// Computes an answer from weights and shard; a task without weights has none. Counts in the state of the shard increase by a 64th.
pub fn echo_at_once(task: &Task) -> Result<Answer, ComputeError> {
    if let Work::Collapse(Collapse::Others { pseudo, shard_state, .. }) = &task.work {
        let mut shard_state = shard_state.value.as_ref().clone();
        let mut counts = vec![0.0; pseudo.len()];
        if let ShardState::Counts(of_items) = &mut shard_state {
            for (param, count) in of_items.iter_mut().flatten() {
                *count += PASS;
                counts[*param as usize] += *count;
            }
        }
        let expectation = Expectation { counts, ..Expectation::default() };
        return Ok(Answer::Collapsed(Collapsed { expectation, shard_state }));
    }
    let Work::Expect { weights: TaskWeights::Touched(weights), .. } = &task.work else {
        return Err(ComputeError::NotSentences);
    };
    let Shard::Sentences(sentences) = &*task.shard.value else { return Err(ComputeError::NotSentences) };
    let weights = weights.in_use();
    if weights.is_empty() {
        return Err(ComputeError::Weights { found: 0, expected: 1 });
    }
    let multiplicity = f64::from(sentences[0].multiplicity);
    let counts = weights.iter().map(|weight| weight.mantissa * multiplicity).collect();
    Ok(Answer::Expectation(Expectation { counts, log_z: -multiplicity, ..Expectation::default() }))
}
