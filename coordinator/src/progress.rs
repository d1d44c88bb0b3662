//! What a user sees while training runs.
//!
//! On a terminal a bar on standard error; elsewhere a plain line per round; with `--json` one object per line on
//! standard output, for programs; with `--quiet` nothing.

use std::io::IsTerminal;
use std::net::SocketAddr;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::metrics::{Observer, Phase, RoundMetrics, Scores, ScoresByDecoder, Start, Summary, score_text};
use crate::status::CheckpointStatus;
use crate::streams;

/// How progress is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Not at all.
    Quiet,
    /// For programs, on standard output.
    Json,
    /// A bar, on standard error.
    Bar,
    /// Lines, on standard error.
    Lines,
}

impl Style {
    /// What the flags ask for, and else what standard error can show.
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
    bar: Option<ProgressBar>,
    max_rounds: usize,
    /// Rounds seen, and their wall seconds.
    seen: usize,
    seconds: f64,
    /// Why nothing can be shown any more; told at the next round.
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
    Resumed { run: usize, round: usize },
    Checkpoint(&'a CheckpointStatus),
    Notice { text: &'a str },
    Finished(&'a Summary),
}

impl Progress {
    /// Shows nothing yet.
    pub fn new(style: Style) -> Progress {
        Progress { style, bar: None, max_rounds: 0, seen: 0, seconds: 0.0, failed: None }
    }

    /// Says where workers may join.
    pub fn listening(&mut self, address: SocketAddr) {
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Listening { address }),
            Style::Bar | Style::Lines => self.say(&format!("listening on {address}")),
        }
    }

    /// Says where metrics are.
    pub fn serving(&mut self, address: SocketAddr) {
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Serving { address }),
            Style::Bar | Style::Lines => self.say(&format!("metrics at http://{address}/metrics")),
        }
    }

    fn emit(&mut self, event: &Event<'_>) {
        let json = serde_json::to_string(event).expect("events are plain data, which serialises");
        if let Err(error) = streams::print(&format!("{json}\n")) {
            self.failed.get_or_insert(error);
        }
    }

    /// A line above the bar, or a plain one.
    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => streams::tell(line),
        }
    }
}

impl Observer for Progress {
    fn started(&mut self, start: &Start) -> anyhow::Result<()> {
        self.max_rounds = start.max_rounds;
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Started(start)),
            Style::Bar | Style::Lines => self.say(&format!(
                "{} sentences, {} symbols, {} rules, adapted: {}",
                start.sentences,
                start.symbols,
                start.rules,
                if start.adapted.is_empty() { "none".to_owned() } else { start.adapted.join(", ") },
            )),
        }
        Ok(())
    }

    fn prepared(&mut self, earlier: &[RoundMetrics]) -> anyhow::Result<()> {
        if let Some(last) = earlier.last() {
            match self.style {
                Style::Quiet => {}
                Style::Json => self.emit(&Event::Resumed { run: last.run, round: last.round }),
                Style::Bar | Style::Lines => self.say(&format!("going on after round {}", last.round)),
            }
        }
        Ok(())
    }

    fn phase(&mut self, phase: Phase) {
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Phase { phase }),
            Style::Lines => streams::tell(phase.name()),
            Style::Bar => {
                if let Some(bar) = self.bar.take() {
                    bar.finish_and_clear();
                }
                let (bar, template) = match phase {
                    Phase::Rounds => (
                        ProgressBar::new(self.max_rounds as u64),
                        "round {pos}/{len} {bar:12.cyan/dim} {wide_msg}",
                    ),
                    _ => (ProgressBar::new_spinner(), "{spinner} {prefix} {elapsed}"),
                };
                let style = ProgressStyle::with_template(template).expect("the template is a constant");
                let bar = bar.with_style(style.progress_chars("━━─")).with_prefix(phase.name());
                bar.enable_steady_tick(std::time::Duration::from_millis(120));
                self.bar = Some(bar);
            }
        }
    }

    fn round(&mut self, round: &RoundMetrics) -> anyhow::Result<()> {
        self.seen += 1;
        self.seconds += round.seconds;
        let left = self.seconds / self.seen as f64 * self.max_rounds.saturating_sub(round.round) as f64;
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Round(round)),
            Style::Lines => streams::tell(&format!("round {}: {}", round.round, line(round, left))),
            Style::Bar => {
                if let Some(bar) = &self.bar {
                    bar.set_position(round.round as u64);
                    bar.set_message(brief(round, left));
                }
            }
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// One that could not be written is a warning, which is logged.
    fn checkpoint(&mut self, written: Result<&CheckpointStatus, &anyhow::Error>) {
        if let (Ok(status), Style::Json) = (written, self.style) {
            self.emit(&Event::Checkpoint(status));
        }
    }

    fn notice(&mut self, text: &str) {
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Notice { text }),
            Style::Bar | Style::Lines => self.say(&format!("notice: {text}")),
        }
    }

    fn finished(&mut self, summary: &Summary) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        match self.style {
            Style::Quiet => {}
            Style::Json => self.emit(&Event::Finished(summary)),
            Style::Bar | Style::Lines => streams::tell(&format!(
                "{} after {} rounds; {:.2} s preparing, {:.2} s training, {:.2} s decoding{}",
                if summary.converged { "converged" } else { "stopped" },
                summary.rounds,
                summary.timings.preprocess,
                summary.timings.rounds,
                summary.timings.decode,
                scores(&summary.scores),
            )),
        }
    }
}

impl Drop for Progress {
    /// An error is printed below the bar, not into it.
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// A round in a line.
fn line(round: &RoundMetrics, seconds_left: f64) -> String {
    let bound = round.bound.map_or("bound –".to_owned(), |bound| format!("bound {bound:.2}"));
    let change = round.change.map_or(String::new(), |change| format!("  change {change:.1e}"));
    let strings: usize = round.strings.values().sum();
    format!(
        "{bound}{change}{}  {strings} strings  {:.0} sentences/s  at most {} left",
        scores(&round.scores),
        round.sentences_per_second,
        duration(seconds_left),
    )
}

/// A round beside a bar: what is cut off on a narrow terminal comes last.
fn brief(round: &RoundMetrics, seconds_left: f64) -> String {
    let mut text = round.bound.map_or("bound –".to_owned(), |bound| format!("bound {bound:.1}"));
    for (decoder, scores) in &round.scores {
        text += &format!("  {decoder} {}", score_text(scores.token_f1, 3));
    }
    text += &format!("  < {}", duration(seconds_left));
    if let Some(change) = round.change {
        text += &format!("  change {change:.1e}");
    }
    text + &format!("  {:.0} sentences/s", round.sentences_per_second)
}

fn scores(scores: &ScoresByDecoder) -> String {
    let text = |scores: &Scores| score_text(scores.token_f1, 4);
    scores.iter().map(|(decoder, scores)| format!("  {decoder} F1 {}", text(scores))).collect()
}

/// Seconds in the unit that reads best.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_fits_a_line() {
        let mut round =
            RoundMetrics { round: 2, bound: Some(-1234.5), change: Some(3e-5), ..Default::default() };
        round.strings.insert("Word".to_owned(), 7);
        round.sentences_per_second = 99.6;
        assert_eq!(
            line(&round, 130.0),
            "bound -1234.50  change 3.0e-5  7 strings  100 sentences/s  at most 2 min left"
        );
        assert_eq!(brief(&round, 130.0), "bound -1234.5  < 2 min  change 3.0e-5  100 sentences/s");
        round.bound = None;
        assert!(line(&round, 1.0).starts_with("bound –"));
    }

    #[test]
    fn events_are_tagged() {
        let json = serde_json::to_value(Event::Round(&RoundMetrics::default())).unwrap();
        assert_eq!(json["event"], "round");
        assert!(json["bound"].is_null());
        let json = serde_json::to_value(Event::Phase { phase: Phase::Rounds }).unwrap();
        assert_eq!(json, serde_json::json!({"event": "phase", "phase": "rounds"}));
    }

    #[test]
    fn durations_read_well() {
        assert_eq!([5.0, 60.0, 600.0, 7200.0].map(duration), ["5.0 s", "60 s", "10 min", "2.0 h"]);
    }
}
