//! Progress of training for the user.
//!
//! On a terminal a bar on standard error; elsewhere a plain line per round; with `--json` one object per line on
//! standard output, for programs; with `--quiet` nothing. Of several runs each line says which it is of, and the end shows all
//! settings in a table.

use std::io::IsTerminal;
use std::net::SocketAddr;

use indicatif::{ProgressBar, ProgressStyle};
use scheduler::Cause;
use serde::Serialize;

use basics::human::{bytes, duration, table};
use basics::streams;
use fleet::{Effort, FleetEvent, Waiting};
use grammaton::data::eval::brackets::BracketScores;
use grammaton::data::eval::dependencies::{Attachment, ByLength};

use crate::events::{Observer, RunEvent};
use crate::metrics::CheckpointStatus;
use crate::metrics::{
    AttachmentByDecoder, Phase, PointSummary, RoundMetrics, Scores, ScoresByDecoder, Start, Summary,
    TestScores, Verdict, score_text,
};
use crate::time_left::TimeLeft;

/// How progress is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// No progress.
    Quiet,
    /// Progress for programs, on standard output.
    Json,
    /// A bar, on standard error.
    Bar,
    /// Lines, on standard error.
    Lines,
}

impl Style {
    /// The style that the flags choose, or else one that standard error can show.
    pub fn choose(quiet: bool, json: bool) -> Style {
        match (quiet, json) {
            (true, _) => Style::Quiet,
            (_, true) => Style::Json,
            _ if std::io::stderr().is_terminal() => Style::Bar,
            _ => Style::Lines,
        }
    }
}

/// Shows how a training run goes.
pub struct Progress {
    style: Style,
    /// Receives the lines.
    tell: Box<dyn FnMut(&str) + Send>,
    bar: Option<ProgressBar>,
    /// Text of the bar while no task waits for workers.
    message: String,
    waiting: Option<Waiting>,
    start: Start,
    time_left: TimeLeft,
    /// Paths and what notices call them.
    names: Vec<(String, String)>,
    /// Why nothing can be shown any more; the next round returns it.
    failed: Option<anyhow::Error>,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Event<'a> {
    Listening { address: SocketAddr },
    Serving { address: SocketAddr },
    Started(&'a Start),
    Phase { phase: Phase },
    Round(&'a RoundMetrics),
    Resumed { round: usize, checkpoint: &'a str },
    Checkpoint(&'a CheckpointStatus),
    WorkerJoined { name: &'a str, slots: u32, workers: usize },
    WorkerLost { name: &'a str, kind: &'a str, cause: String, workers: usize },
    WorkersMissed { events: usize },
    Waiting { stage: String, workers: usize, wanted: usize },
    WaitingOver { seconds: f64 },
    Notice { text: &'a str },
    Stopped { text: &'a str },
    Finished(&'a Summary),
}

/// The text with names in place of paths and keys.
pub fn with_names(text: &str, names: &[(String, String)]) -> String {
    names.iter().fold(text.to_owned(), |text, (path, name)| text.replace(path, name))
}

impl Progress {
    /// Shows nothing yet.
    pub fn new(style: Style) -> Progress {
        Progress::telling(style, streams::tell)
    }

    /// The same, whose lines say these names: paths or keys of the job, and what the user calls them.
    pub fn with_names(mut self, names: Vec<(String, String)>) -> Progress {
        self.names = names;
        self
    }

    /// Progress in [`Style::Lines`], which go to `tell`.
    pub fn lines(tell: impl FnMut(&str) + Send + 'static) -> Progress {
        Progress::telling(Style::Lines, tell)
    }

    fn telling(style: Style, tell: impl FnMut(&str) + Send + 'static) -> Progress {
        let (tell, start) = (Box::new(tell), Start::default());
        let (bar, message, waiting, time_left) = (None, String::new(), None, TimeLeft::default());
        Progress { style, tell, bar, message, waiting, start, time_left, names: Vec::new(), failed: None }
    }

    /// Says where workers may join.
    pub fn listening(&mut self, address: SocketAddr) {
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Listening { address }),
            Style::Bar | Style::Lines => self.say(&format!("listening on {address}")),
        }
    }

    /// Says where there is something to look at: `what` and its URL.
    pub fn serving(&mut self, address: SocketAddr, what: &str) {
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Serving { address }),
            Style::Bar | Style::Lines => self.say(what),
        }
    }

    fn emit(&mut self, event: &Event<'_>) {
        let json = serde_json::to_string(event).expect("events are plain data, which serialises");
        if let Err(error) = streams::print(&format!("{json}\n")) {
            self.failed.get_or_insert(error);
        }
    }

    /// A line above the bar, or a plain one.
    fn say(&mut self, line: &str) {
        let line = with_names(line, &self.names);
        match &self.bar {
            Some(bar) => bar.println(line),
            None => (self.tell)(&line),
        }
    }

    /// Shows the current text of the bar.
    fn show_message(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message(self.waiting.map_or_else(|| self.message.clone(), |waiting| waiting.to_string()));
        }
    }

    fn clear_bar(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn started(&mut self, start: &Start) {
        self.start = start.clone();
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Started(start)),
            Style::Bar | Style::Lines => self.say(&format!(
                "{} sentences, {} symbols, {} rules, adapted: {}{}{}",
                start.sentences,
                start.symbols,
                start.rules,
                if start.adapted.is_empty() { "none".to_owned() } else { start.adapted.join(", ") },
                if start.runs > 1 { format!("; {} runs", start.runs) } else { String::new() },
                start.memory.map(|size| format!("; about {} of memory", bytes(size))).unwrap_or_default(),
            )),
        }
    }

    fn resumed(&mut self, checkpoint: &str, round: usize) {
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Resumed { round, checkpoint }),
            Style::Bar | Style::Lines if round == 0 => {
                self.say(&format!("resumed before the first round, with checkpoint {checkpoint}"));
            }
            Style::Bar | Style::Lines => {
                self.say(&format!("resumed after round {round} of checkpoint {checkpoint}"));
            }
        }
    }

    fn phase(&mut self, phase: Phase) {
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Phase { phase }),
            Style::Lines => self.say(phase.name()),
            Style::Bar => {
                self.clear_bar();
                let (bar, template) = match phase {
                    Phase::Rounds => (
                        ProgressBar::new(self.start.max_rounds as u64),
                        "round {pos}/{len} {bar:12.cyan/dim} {wide_msg}",
                    ),
                    _ => (ProgressBar::new_spinner(), "{spinner} {msg} {elapsed}"),
                };
                let style = ProgressStyle::with_template(template).expect("the template is a constant");
                let bar = bar.with_style(style.progress_chars("━━─"));
                bar.enable_steady_tick(std::time::Duration::from_millis(120));
                self.bar = Some(bar);
                self.message = phase.name().to_owned();
                self.show_message();
            }
        }
    }

    fn round(&mut self, round: &RoundMetrics) {
        let left = self.time_left.seconds();
        let of = run_name(&self.start, round.run);
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Round(round)),
            Style::Lines => self.say(&match of {
                Some(of) => format!("round {}, {of}: {}", round.round, line(round, left)),
                None => format!("round {}: {}", round.round, line(round, left)),
            }),
            Style::Bar => {
                if let Some(bar) = &self.bar {
                    bar.set_position(round.round as u64);
                }
                self.message = of.map_or(String::new(), |of| of + "  ") + &brief(round, left);
                self.show_message();
            }
        }
    }

    fn notice(&mut self, text: &str) {
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Notice { text: &with_names(text, &self.names) }),
            Style::Bar | Style::Lines => self.say(&format!("notice: {text}")),
        }
    }

    fn fleet(&mut self, event: &FleetEvent) {
        match event {
            FleetEvent::Waiting(waiting) => self.waiting = Some(*waiting),
            FleetEvent::WaitingOver { .. } => self.waiting = None,
            _ => {}
        }
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&of_fleet(event)),
            Style::Lines => self.say(&fleet_line(event)),
            Style::Bar => match event {
                FleetEvent::Waiting(_) | FleetEvent::WaitingOver { .. } => self.show_message(),
                _ => self.say(&fleet_line(event)),
            },
        }
    }

    /// Shows a stop, in every style.
    fn stopped(&mut self, text: &str) {
        if self.style == Style::Json {
            self.emit(&Event::Stopped { text });
        }
        self.clear_bar();
        (self.tell)(text);
    }

    fn finished(&mut self, summary: &Summary) {
        self.clear_bar();
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Finished(summary)),
            Style::Bar | Style::Lines => {
                if summary.tasks.audited > 0 {
                    let Effort { computed, audited, .. } = summary.tasks;
                    self.say(&format!(
                        "{audited} of {computed} tasks were audited: two workers gave the same answer"
                    ));
                }
                points(summary).iter().for_each(|line| self.say(line));
                self.say(&format!(
                    "{}; {:.2} s preparing, {:.2} s training, {:.2} s decoding{}",
                    summary.ended(),
                    summary.timings.preprocess,
                    summary.timings.rounds,
                    summary.timings.decode,
                    scores(&summary.result.scores) + &attachment(&summary.result.attachment),
                ));
                baseline(&summary.result.attachment).iter().for_each(|line| self.say(line));
                if !summary.choice.is_empty() {
                    self.say(&summary.choice);
                }
                if let Some(test) = &summary.result.test {
                    self.say(&format!("corpus.test:{}", test_scores(test)));
                }
                summary.below_baseline.iter().for_each(|line| self.say(line));
                if let Some(Verdict { text, advice, .. }) = &summary.verdict {
                    self.say(format!("{text} {advice}").trim_end());
                }
            }
        }
    }
}

impl Observer for Progress {
    fn shows_memory(&self) -> bool {
        self.style != Style::Quiet
    }

    /// A line that cannot be written is an error when the next round ends.
    fn on(&mut self, event: &RunEvent) -> anyhow::Result<()> {
        self.time_left.on(event);
        match event {
            RunEvent::Started(start) => self.started(start),
            RunEvent::Resumed { checkpoint, round } => self.resumed(checkpoint, *round),
            RunEvent::PhaseBegun(phase) => self.phase(*phase),
            RunEvent::RoundFinished(round) => {
                self.round(round);
                return self.failed.take().map_or(Ok(()), Err);
            }
            RunEvent::Checkpointed(status) if self.style == Style::Json => {
                self.emit(&Event::Checkpoint(status));
            }
            RunEvent::Fleet(event) => self.fleet(event),
            RunEvent::Notice(text) => self.notice(text),
            RunEvent::Stopped(text) => self.stopped(text),
            RunEvent::Finished(summary) => self.finished(summary),
            // The log warns of a checkpoint that could not be written.
            RunEvent::Prepared { .. }
            | RunEvent::Scored(_)
            | RunEvent::Checkpointed(_)
            | RunEvent::CheckpointFailed(_) => {}
        }
        Ok(())
    }
}

impl Drop for Progress {
    /// An error is printed below the bar, not into it.
    fn drop(&mut self) {
        self.clear_bar();
    }
}

/// An event of the fleet, for programs.
fn of_fleet(event: &FleetEvent) -> Event<'_> {
    match event {
        FleetEvent::WorkerJoined { name, slots, workers } => {
            Event::WorkerJoined { name, slots: *slots, workers: *workers }
        }
        FleetEvent::WorkerLost { name, cause, workers } => {
            Event::WorkerLost { name, kind: cause.kind(), cause: cause.to_string(), workers: *workers }
        }
        FleetEvent::Missed { events } => Event::WorkersMissed { events: *events },
        FleetEvent::Waiting(Waiting { stage, workers, wanted }) => {
            Event::Waiting { stage: stage.to_string(), workers: *workers, wanted: *wanted }
        }
        FleetEvent::WaitingOver { waited } => Event::WaitingOver { seconds: waited.as_secs_f64() },
    }
}

/// An event of the fleet as a line. Names of workers cannot move the cursor.
fn fleet_line(event: &FleetEvent) -> String {
    let line = match event {
        FleetEvent::WorkerJoined { name, workers, .. } => {
            format!("worker {name} joined, number of workers: {workers}")
        }
        FleetEvent::WorkerLost { name, cause: Cause::Left, workers } => {
            format!("worker {name} left, number of workers: {workers}")
        }
        FleetEvent::WorkerLost { name, cause, workers } => {
            format!("worker {name} was lost ({cause}), number of workers: {workers}")
        }
        FleetEvent::Missed { events } => format!("workers joined or were lost {events} more times"),
        FleetEvent::Waiting(waiting) => waiting.to_string(),
        FleetEvent::WaitingOver { waited } => {
            format!("waited for workers for {}", duration(waited.as_secs_f64()))
        }
    };
    line.replace(char::is_control, "\u{fffd}")
}

/// Name of one of several runs: its setting, if there are several, and its number.
fn run_name(start: &Start, run: usize) -> Option<String> {
    match start.points.get(run - 1) {
        Some(point) if !point.is_empty() => Some(format!("{point}, run {run}")),
        _ => (start.runs > 1).then(|| format!("run {run}")),
    }
}

/// All settings, if there are several, each with what its best run came to.
fn points(summary: &Summary) -> Vec<String> {
    let points = &summary.points;
    let Some(first) = points.first() else { return Vec::new() };
    let (held_out, r_hat) = (
        points.iter().any(|point| point.result.held_out.is_some()),
        points.iter().any(|point| point.result.r_hat.is_some()),
    );
    let mut head: Vec<String> = ["", "setting", "run", "rounds", "objective"].map(str::to_owned).to_vec();
    head.extend(held_out.then(|| "perplexity".to_owned()));
    head.extend(r_hat.then(|| "R-hat".to_owned()));
    head.extend(first.result.scores.keys().map(|decoder| format!("F1 {decoder}")));
    head.extend(first.result.attachment.keys().map(|decoder| format!("attachment {decoder}")));
    let row = |point: &PointSummary| {
        let kept = if point.result.run == summary.result.run { "*" } else { "" };
        let bound = score_text(point.result.bound, 2);
        let (run, rounds) = (point.result.run.to_string(), point.result.rounds.to_string());
        let mut row = vec![kept.to_owned(), point.name.clone(), run, rounds, bound];
        row.extend(held_out.then(|| score_text(point.result.held_out.map(|found| found.perplexity), 3)));
        row.extend(r_hat.then(|| score_text(point.result.r_hat, 3)));
        let f1 = |decoder| score_text(point.result.scores.get(decoder).and_then(|scores| scores.token_f1), 4);
        row.extend(first.result.scores.keys().map(f1));
        let arcs = |decoder| point.result.attachment.get(decoder).map_or("–".to_owned(), by_length);
        row.extend(first.result.attachment.keys().map(arcs));
        row
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(points.iter().map(row)).collect();
    table(&rows)
}

/// A round in a line.
fn line(round: &RoundMetrics, seconds_left: Option<f64>) -> String {
    let bound = round.bound.map_or("bound –".to_owned(), |bound| format!("bound {bound:.2}"));
    let change = round.change.map_or(String::new(), |change| format!("  change {change:.1e}"));
    let strings = if round.strings.is_empty() {
        String::new()
    } else {
        format!("  {} strings", round.strings.values().sum::<usize>())
    };
    format!(
        "{bound}{change}{}{}{strings}  {:.0} sentences/s{}",
        scores(&round.scores) + &attachment(&round.attachment),
        measured(round),
        round.sentences_per_second,
        seconds_left.map_or(String::new(), |seconds| format!("  at most {} left", duration(seconds))),
    )
}

/// A round beside a bar: what is cut off on a narrow terminal comes last.
fn brief(round: &RoundMetrics, seconds_left: Option<f64>) -> String {
    let mut text = round.bound.map_or("bound –".to_owned(), |bound| format!("bound {bound:.1}"));
    for (decoder, scores) in &round.scores {
        text += &format!("  {decoder} {}", score_text(scores.token_f1, 3));
    }
    text += &measured(round);
    if let Some(seconds) = seconds_left {
        text += &format!("  < {}", duration(seconds));
    }
    if let Some(change) = round.change {
        text += &format!("  change {change:.1e}");
    }
    text + &format!("  {:.0} sentences/s", round.sentences_per_second)
}

/// Measurements that are not made in every round.
fn measured(round: &RoundMetrics) -> String {
    let perplexity = round.held_out.map(|held_out| format!("  perplexity {:.3}", held_out.perplexity));
    let r_hat = round.r_hat.map(|r_hat| format!("  R-hat {r_hat:.3}"));
    perplexity.into_iter().chain(r_hat).collect()
}

fn scores(scores: &ScoresByDecoder) -> String {
    let text = |scores: &Scores| score_text(scores.token_f1, 4);
    scores.iter().map(|(decoder, scores)| format!("  {decoder} F1 {}", text(scores))).collect()
}

fn attachment(scores: &AttachmentByDecoder) -> String {
    let text = |(decoder, scores)| format!("  {decoder} attachment {}", by_length(scores));
    scores.iter().map(text).collect()
}

/// The better of two trivial analyses, for comparison: each word depends on the next one, or on the one before.
fn baseline(scores: &AttachmentByDecoder) -> Option<String> {
    let first = scores.values().next()?;
    let by_length = |of: fn(&Attachment) -> Option<f64>| first.classes().map(|(_, scores)| of(scores));
    let [right, left] = [by_length(|scores| scores.attach_right), by_length(|scores| scores.attach_left)];
    let (name, found) = if right.last() < left.last() { ("left", left) } else { ("right", right) };
    let found = found.map(|score| score_text(score, 4)).join(" / ");
    Some(format!("attachment in sentences of up to 10 words, up to 20, all; baseline attach-{name} {found}"))
}

/// All that there is of the sentences of `corpus.test`.
fn test_scores(test: &TestScores) -> String {
    let perplexity = test.predicted.map(|predicted| format!("  perplexity {:.3}", predicted.perplexity));
    let bracket = |(decoder, scores): (&String, &BracketScores)| {
        format!("  {decoder} bracket F1 {}", score_text(scores.labelled.f1, 4))
    };
    let brackets: String = test.brackets.iter().map(bracket).collect();
    perplexity.unwrap_or_default() + &scores(&test.scores) + &attachment(&test.attachment) + &brackets
}

/// Directed accuracies of sentences of up to 10 and 20 words, and of all.
fn by_length(scores: &ByLength<Attachment>) -> String {
    scores.classes().map(|(_, scores)| score_text(scores.directed, 4)).join(" / ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fleet::Stage;
    use serde_json::json;

    use super::*;
    use crate::metrics::HeldOut;
    use crate::metrics::RunResult;

    #[test]
    fn a_round_fits_a_line() {
        let mut round =
            RoundMetrics { round: 2, bound: Some(-1234.5), change: Some(3e-5), ..Default::default() };
        round.strings.insert("Word".to_owned(), 7);
        round.sentences_per_second = 99.6;
        assert_eq!(
            line(&round, Some(130.0)),
            "bound -1234.50  change 3.0e-5  7 strings  100 sentences/s  at most 2 min left"
        );
        assert_eq!(brief(&round, Some(130.0)), "bound -1234.5  < 2 min  change 3.0e-5  100 sentences/s");
        round.bound = None;
        assert!(line(&round, None).starts_with("bound –"));
    }

    #[test]
    fn several_runs_are_told_apart() {
        let start = |runs, points: &[&str]| Start {
            runs,
            points: points.iter().map(|&name| name.to_owned()).collect(),
            ..Start::default()
        };
        let name = |start: Start, run| run_name(&start, run).unwrap_or_default();
        assert_eq!(name(start(1, &[""]), 1), "");
        assert_eq!(name(start(4, &[""; 4]), 3), "run 3");
        assert_eq!(name(start(2, &["alpha=1", "alpha=2"]), 2), "alpha=2, run 2");
        let uneven = ["restarts=2", "restarts=2", "restarts=1"];
        assert_eq!(name(start(3, &uneven), 2), "restarts=2, run 2");
        assert_eq!(name(start(3, &uneven), 3), "restarts=1, run 3");
        let held_out = HeldOut { perplexity: 9.5, ..HeldOut::default() };
        let round = RoundMetrics { held_out: Some(held_out), r_hat: Some(1.01), ..Default::default() };
        assert_eq!(
            line(&round, Some(1.0)),
            "bound –  perplexity 9.500  R-hat 1.010  0 sentences/s  at most 1.0 s left"
        );
    }

    #[test]
    fn all_settings_are_shown_at_the_end() {
        let point = |name: &str, run, bound, f1| PointSummary {
            name: name.to_owned(),
            result: RunResult {
                run,
                rounds: 12,
                bound: Some(bound),
                r_hat: (run == 5).then_some(1.25),
                scores: [("mbr".to_owned(), Scores { token_f1: f1, ..Scores::default() })].into(),
                ..RunResult::default()
            },
            ..PointSummary::default()
        };
        let settings = vec![point("alpha=1", 2, -10.25, None), point("alpha=1e-10", 5, -9.5, Some(0.5))];
        let result = RunResult { run: 5, ..RunResult::default() };
        let summary = Summary { result, points: settings, ..Summary::default() };
        assert_eq!(
            points(&summary),
            [
                "   setting      run  rounds  objective  R-hat  F1 mbr",
                "   alpha=1      2    12      -10.25     –      –",
                "*  alpha=1e-10  5    12      -9.50      1.250  0.5000",
            ]
        );
        assert!(points(&Summary::default()).is_empty());
    }

    #[test]
    fn a_bar_shows_waiting_and_then_its_earlier_text() {
        let mut progress = Progress::new(Style::Bar);
        let bar_says = |progress: &Progress| progress.bar.as_ref().unwrap().message();
        let mut tell = |event: RunEvent| {
            progress.on(&event).unwrap();
            bar_says(&progress)
        };
        let waiting = FleetEvent::Waiting(Waiting { stage: Stage::Index, workers: 1, wanted: 3 });
        let over = FleetEvent::WaitingOver { waited: Duration::from_secs(2) };
        for (event, said) in [
            (RunEvent::PhaseBegun(Phase::Preprocess), "preparing"),
            (RunEvent::Fleet(waiting.clone()), "waiting for workers: 1 of 3"),
            (RunEvent::Fleet(over.clone()), "preparing"),
            (RunEvent::PhaseBegun(Phase::Rounds), "training"),
            (
                RunEvent::RoundFinished(Box::new(RoundMetrics { run: 1, round: 1, ..Default::default() })),
                "bound –  < 0.0 s  0 sentences/s",
            ),
            (RunEvent::Fleet(waiting.clone()), "waiting for workers: 1 of 3"),
            (RunEvent::Fleet(over.clone()), "bound –  < 0.0 s  0 sentences/s"),
            (RunEvent::PhaseBegun(Phase::Decode), "decoding"),
        ] {
            assert_eq!(tell(event), said);
        }
    }

    #[test]
    fn events_of_the_fleet_are_lines_of_text_and_of_json() {
        let cut = || Cause::Disconnected("cut".into());
        let name = || "al\u{1b}ice".to_owned();
        for (event, line, json) in [
            (
                FleetEvent::WorkerJoined { name: name(), slots: 2, workers: 1 },
                "worker al\u{fffd}ice joined, number of workers: 1",
                json!({"event": "worker-joined", "name": name(), "slots": 2, "workers": 1}),
            ),
            (
                FleetEvent::WorkerLost { name: name(), cause: cut(), workers: 0 },
                "worker al\u{fffd}ice was lost (connection lost: cut), number of workers: 0",
                json!({
                    "event": "worker-lost", "name": name(), "kind": "disconnected", "cause": "connection lost: cut", "workers": 0
                }),
            ),
            (
                FleetEvent::WorkerLost { name: name(), cause: Cause::Left, workers: 0 },
                "worker al\u{fffd}ice left, number of workers: 0",
                json!({"event": "worker-lost", "name": name(), "kind": "left", "cause": "left", "workers": 0}),
            ),
            (
                FleetEvent::Missed { events: 7 },
                "workers joined or were lost 7 more times",
                json!({"event": "workers-missed", "events": 7}),
            ),
            (
                FleetEvent::Waiting(Waiting { stage: Stage::Index, workers: 0, wanted: 2 }),
                "waiting for workers: 0 of 2",
                json!({"event": "waiting", "stage": "index", "workers": 0, "wanted": 2}),
            ),
            (
                FleetEvent::WaitingOver { waited: Duration::from_millis(1500) },
                "waited for workers for 1.5 s",
                json!({"event": "waiting-over", "seconds": 1.5}),
            ),
        ] {
            assert_eq!(fleet_line(&event), line);
            assert_eq!(serde_json::to_value(of_fleet(&event)).unwrap(), json);
        }
    }

    #[test]
    fn events_are_tagged() {
        let json = serde_json::to_value(Event::Round(&RoundMetrics::default())).unwrap();
        assert_eq!(json["event"], "round");
        assert!(json["bound"].is_null());
        let json = serde_json::to_value(Event::Phase { phase: Phase::Rounds }).unwrap();
        assert_eq!(json, serde_json::json!({"event": "phase", "phase": "rounds"}));
    }
}
