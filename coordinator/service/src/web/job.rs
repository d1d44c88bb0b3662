//! The page of a job: progress, curves, runs, learned parameters, workers and log.

use basics::human::visible;
use basics::human::{bytes, duration, number, whole};
use fleet::{AccountStatus, FleetStatus, Shards};
use grammaton::data::corpus::Unit;
use maud::{Markup, html};
use training::metrics::{decoder_name, score_text};
use training::output;
use training::report::rounds::Rounds;
use training::report::{self, rounds, rules};
use training::snapshot::{Snapshot, Strings};

use super::events::Part;
use super::{files, jobs, utc, workers};
use crate::job_log::Line;
use crate::record::{JobId, Record, State, View};
use crate::view::JobView;
use crate::{Problem, Service};

/// Maximum number of lines of the log.
const LINES: usize = 20;
/// Maximum number of workers in the table.
const WORKERS: usize = 30;
/// Maximum number of runs in the table.
const RUNS: usize = 32;

/// The parts of the page.
pub fn parts(service: &Service, id: JobId, fleet: &FleetStatus) -> Result<Vec<Part>, Problem> {
    let view = service.job(id)?;
    let results = service.files(&view.record)?;
    let job_file = service.job_file(id)?;
    Ok(drawn(&view, &service.seen(id), &service.last_lines(id, LINES)?, &results, job_file.as_deref(), fleet))
}

fn drawn(
    view: &View,
    seen: &JobView,
    log: &[Line],
    results: &[(String, u64)],
    job_file: Option<&str>,
    fleet: &FleetStatus,
) -> Vec<Part> {
    let in_work = view.record.state.is_working();
    let fleet = in_work.then_some(fleet);
    let is_own = |status: &&AccountStatus| status.account.id == view.record.account().id;
    let own = fleet.and_then(|fleet| fleet.accounts.iter().find(is_own));
    let best = seen.best();
    let curves = rounds::figures(&Rounds {
        all: &seen.rounds,
        runs: 1..seen.start.runs + 1,
        kept: best,
        objective: &seen.objective,
    });
    let snapshot = seen.snapshots.get(&best).or_else(|| seen.snapshots.values().next());
    let sentences = |snapshot| sentences(snapshot, seen);
    vec![
        Part::new("head", head(&view.record)),
        Part::new("actions", actions(&view.record)),
        Part::new("files", downloads(view.record.id, results)),
        Part::new("far", progress_of(view, seen, best)),
        Part::new("curves", curves),
        Part::new("runs", runs(seen, best, view.record.state.is_over())),
        Part::new("learned", snapshot.map_or_else(nothing, |snapshot| learned(snapshot, &view.record.state))),
        Part::new("sentences", snapshot.map_or_else(nothing, sentences)),
        Part::new("shards", own.map_or_else(nothing, shards)),
        Part::new("workers", fleet.map_or_else(nothing, computing)),
        Part::new("log", lines(log)),
        Part::new("settings", job_file.map_or_else(nothing, settings)),
    ]
}

/// Content of an empty part.
fn nothing() -> Markup {
    html! {}
}

fn head(record: &Record) -> Markup {
    let Record { id, name, owner, priority, max_workers, state, submitted, begun, ended, .. } = record;
    let took =
        begun.zip(*ended).filter(|_| state.is_over()).map(|(begun, ended)| ended.0.saturating_sub(begun.0));
    html! {
        h1 { (visible(name)) " " span aria-live="polite" { (jobs::state(state)) } }
        p.quiet {
            "Job " (id) " of " (visible(owner)) " · priority " (priority)
            @if let Some(most) = max_workers { " · at most " (most) " workers" }
            " · submitted " (utc::minute(*submitted)) " UTC"
            @if let Some(millis) = took { " · took " (duration(millis as f64 / 1000.0)) }
        }
        @match state {
            State::Failed { error } => { p.bad { (visible(error)) } }
            State::Done { parameters_sha256 } => { p.quiet { "Parameters " code { (parameters_sha256) } } }
            State::Queued | State::Running | State::Pausing | State::Stopping | State::Cancelled => {}
        }
    }
}

fn actions(record: &Record) -> Markup {
    let form = |what: &str, name: &str, class: &str| {
        html! {
            form method="post" action={ "/jobs/" (record.id) "/" (what) } class=(class) {
                button id=(what) { (name) }
            }
        }
    };
    html! {
        @match record.state {
            State::Queued | State::Running | State::Pausing => (form("cancel", "Cancel the job", "act stop")),
            State::Failed { .. } | State::Cancelled => (form("resume", "Resume the job", "act")),
            State::Stopping | State::Done { .. } => {}
        }
        @if record.state.is_over() {
            details.act {
                summary { "Delete…" }
                (form("delete", "Delete the job and its results, for good", "act stop"))
            }
        }
    }
}

fn downloads(id: JobId, results: &[(String, u64)]) -> Markup {
    if results.is_empty() {
        return nothing();
    }
    let answer = output::answer(results.iter().map(|(path, _)| path.as_str()));
    let link = |path: &str| path.split('/').map(encoded).collect::<Vec<_>>().join("/");
    html! {
        h2 { "Results" }
        p {
            @if results.iter().any(|(path, _)| path == files::REPORT) {
                a #report .button href={ "/jobs/" (id) "/files/" (files::REPORT) } { "Open the report" } " "
            }
            @if let Some(answer) = answer {
                a #answer .button href={ "/jobs/" (id) "/files/" (link(answer)) } download { "Download the answer" } " "
            }
            a #archive .button href={ "/jobs/" (id) "/" (files::ARCHIVE) } download { "Download all files" }
            @if results.iter().any(|(path, _)| path == output::BOUNDARIES) {
                " " a #annotate .button href={ "/jobs/" (id) "/annotate/" } { "Annotate lines" }
            }
        }
        ul.files {
            @for (path, size) in results.iter().filter(|(path, _)| path != files::REPORT) {
                @let is_answer = answer == Some(path.as_str());
                li class=[is_answer.then_some("answer")] {
                    a href={ "/jobs/" (id) "/files/" (link(path)) } download { (path) }
                    " " span.quiet { (bytes(*size)) @if is_answer { ", the answer" } }
                }
            }
        }
    }
}

/// Percent-encodes a part of a path.
fn encoded(part: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    part.bytes().map(letter).collect()
}

fn progress_of(view: &View, seen: &JobView, best: usize) -> Markup {
    let status = view.progress.as_ref();
    let in_work = status.filter(|_| view.record.state.is_working());
    let mut figures: Vec<(String, String)> = Vec::new();
    let mut tell = |name: &str, value: String| figures.push((name.to_owned(), value));
    if view.record.state == State::Queued {
        tell("jobs before it", view.ahead.to_string());
    }
    if let Some(status) = in_work {
        tell("now", jobs::phase(status));
        if let Some(left) = status.seconds_left {
            tell("left, at most", duration(left));
        }
    }
    let (last, scored) = seen.last(best);
    if let Some(last) = last {
        if in_work.is_none() {
            tell("rounds", last.round.to_string());
        }
        if let Some(bound) = last.bound {
            tell("objective", number(bound, &[]));
        }
        if in_work.is_some() {
            tell("sentences/s", whole(last.sentences_per_second.round()));
        }
        if let Some(held_out) = last.held_out {
            tell("held-out perplexity", number(held_out.perplexity, &[]));
        }
    }
    if !seen.final_scores.is_empty() && in_work.is_none() {
        seen.final_scores
            .iter()
            .filter(|(name, _)| name != "objective")
            .for_each(|(name, value)| tell(name, value.clone()));
    } else if let Some(scored) = scored {
        for (decoder, scores) in &scored.scores {
            tell(&format!("token F1, {decoder}"), score_text(scores.token_f1, 3));
        }
        for (decoder, scores) in &scored.attachment {
            tell(&format!("attachment, {decoder}"), score_text(scores.all.directed, 3));
        }
    }
    if seen.start.sentences > 0 {
        tell("sentences", whole(seen.start.sentences as f64));
    }
    html! {
        @if let Some(status) = in_work { (jobs::bar(status)) }
        dl.figures { @for (name, value) in figures { div { dt { (name) } dd { (value) } } } }
    }
}

/// Table of the runs, if there are several.
fn runs(seen: &JobView, best: usize, is_over: bool) -> Markup {
    let n = seen.start.runs;
    if n < 2 {
        return nothing();
    }
    let row = |run: usize| {
        let (Some(last), scored) = seen.last(run) else { return nothing() };
        let point = seen.start.points.get(run - 1).map_or("", |point| point);
        let scores = scored.and_then(|scored| scored.scores.values().next());
        let directed = || scored?.attachment.values().next()?.all.directed;
        let score = score_text(scores.map_or_else(directed, |scores| scores.token_f1), 3);
        let number_or_dash = |value: Option<f64>| value.map_or("–".to_owned(), |value| number(value, &[]));
        html! {
            tr class=[(run == best).then_some("kept")] {
                td { (run) }
                td.left { (point) }
                td { (last.round) }
                td { (number_or_dash(last.bound)) }
                td { (score) }
                td { (number_or_dash(last.held_out.map(|held_out| held_out.perplexity))) }
            }
        }
    };
    html! {
        h2 { "Runs" }
        p.quiet { @if is_over { "Run " } @else { "So far run " } (best) " has the highest objective." }
        div.scroll {
            table {
                thead {
                    tr {
                        th { "run" } th.left { "setting" } th { "round" } th { "objective" } th { "score" }
                        th { "perplexity" }
                    }
                }
                tbody { @for run in (1..=n).take(RUNS) { (row(run)) } }
            }
        }
        @if n > RUNS { p.quiet { "And " (n - RUNS) " others." } }
    }
}

fn learned(snapshot: &Snapshot, state: &State) -> Markup {
    let title = match state {
        State::Done { .. } => "Learned",
        State::Failed { .. } => "Learned before it failed",
        State::Cancelled => "Learned before it was cancelled",
        State::Queued | State::Running | State::Pausing | State::Stopping => "Learned so far",
    };
    let rules = rules::list(&snapshot.rules);
    let lists: Vec<&Strings> =
        snapshot.strings.iter().filter(|strings| !strings.most_used.is_empty()).collect();
    if rules.0.is_empty() && lists.is_empty() {
        return nothing();
    }
    let about = if lists.is_empty() {
        "rules used most, with their mean probabilities"
    } else {
        "strings used most, with their expected number of uses"
    };
    html! {
        h2 { (title) }
        p.quiet { "The " (about) "; run " (snapshot.run) ", round " (snapshot.round) "." }
        (rules)
        @for Strings { of, n, most_used } in lists {
            h3 { (of) " " span.quiet { (whole(*n as f64)) " strings" } }
            (report::bars(most_used.iter().map(|(string, uses)| (&string[..], *uses))))
        }
    }
}

fn sentences(snapshot: &Snapshot, seen: &JobView) -> Markup {
    let name =
        if seen.is_chain { "sample" } else { decoder_name(grammaton::models::decode::Decoder::Viterbi) };
    // Lines with bars between segments have tokens as symbols.
    let has_bars = |line: &String| line.contains(" | ");
    let is_of_tokens = snapshot.sentences.iter().any(|sample| sample.segmentations.iter().any(has_bars));
    let unit = if is_of_tokens { Unit::Token } else { Unit::Char };
    let has_gold = snapshot.sentences.iter().any(|sample| sample.gold.is_some());
    html! {
        @if !snapshot.sentences.is_empty() {
            h2 { "Sentences" }
            p.quiet { "By " code { (name) } "." @if has_gold { " Marked segments are not in the gold segmentation." } }
            (report::sentences::list(&snapshot.sentences, &[name], unit))
        }
    }
}

/// Shards of a job by state, number of workers, and age of the oldest lease.
fn shards(own: &AccountStatus) -> Markup {
    let Shards { free, assigned, done } = own.shards;
    let all = (free + assigned + done) as f64;
    let Some(stage) = own.stage.filter(|_| all > 0.0) else { return nothing() };
    let shares = [("done", done), ("assigned", assigned), ("free", free)];
    let width = |n| 100.0 * n as f64 / all;
    let before = |at: usize| shares[..at].iter().fold(0.0, |sum, (_, n)| sum + width(*n));
    let hundredths = |value: f64| format!("{value:.2}");
    html! {
        h2 { "Shards " span.quiet { (stage) } }
        svg.shards viewBox="0 0 100 6" preserveAspectRatio="none" role="img"
            aria-label={ (done) " done, " (assigned) " assigned, " (free) " free" } {
            @for (at, (name, n)) in shares.iter().enumerate() {
                rect class=(name) x=(hundredths(before(at))) width=(hundredths(width(*n))) height="6" {}
            }
        }
        ul.key { @for (name, n) in shares { li class=(name) { (n) " " (name) } } }
        @if let Some(oldest) = &own.oldest {
            p.quiet {
                "Workers that hold leases: " (own.members) ". The oldest lease is "
                (duration(oldest.age.as_secs_f64())) " old, with " (oldest.member) "."
            }
        }
    }
}

/// The job file, which a click opens.
fn settings(job_file: &str) -> Markup {
    html! {
        details {
            summary { "Settings" }
            p.quiet { "The job file, with the values that were set when the job was submitted." }
            pre { (visible(job_file)) }
        }
    }
}

fn computing(fleet: &FleetStatus) -> Markup {
    html! {
        h2 { "Workers " span.quiet { "of all jobs together" } }
        (workers::table(fleet, WORKERS))
    }
}

fn lines(log: &[Line]) -> Markup {
    html! {
        h2 { "Log" }
        ol.log { @for Line { at, text } in log { li { time { (utc::second(*at)) } " " (visible(text)) } } }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use training::metrics::{RoundMetrics, Start};
    use training::outcome::Sample;

    use super::*;
    use crate::record::Millis;
    use crate::status::snapshot::tests::middle;
    use crate::web::frame::render_parts;
    use crate::web::jobs::tests::view;

    const TAG: &str = "<script>alert(1)</script>";

    fn seen(runs: usize) -> JobView {
        let round = |run: usize, round: usize| RoundMetrics {
            run,
            round,
            bound: (round > 1).then(|| -1000.0 / (round * run) as f64),
            ..Default::default()
        };
        let sample = Sample { gold: Some(TAG.into()), segmentations: vec![TAG.into()], ..Sample::default() };
        let snapshot = Snapshot {
            run: runs,
            round: 5,
            strings: vec![Strings {
                of: TAG.into(),
                n: 2,
                most_used: vec![(TAG.into(), 7.0), ("ab".into(), 3.5)],
            }],
            rules: vec![(TAG.into(), 0.5)],
            sentences: vec![sample],
        };
        JobView {
            objective: "Variational bound".into(),
            start: Start { runs, points: vec![TAG.into()], max_rounds: 40, ..Default::default() },
            rounds: (1..=5).flat_map(|at| (1..=runs).map(move |run| round(run, at))).collect(),
            snapshots: [(runs, snapshot)].into(),
            ..Default::default()
        }
    }

    fn page(view: &View, seen: &JobView, results: &[(String, u64)]) -> String {
        let (_, mut fleet) = middle();
        fleet.members[0].name = TAG.into();
        fleet.accounts = vec![AccountStatus {
            account: view.record.account(),
            stage: fleet.stage,
            shards: fleet.shards,
            oldest: fleet.oldest.clone(),
            slot_time: Duration::ZERO,
            members: 2,
        }];
        let log = [Line { at: Millis(0), text: TAG.into() }];
        let html = render_parts(&drawn(view, seen, &log, results, Some(TAG), &fleet)).into_string();
        for unwanted in ["<script", "style=", "NaN", "onerror"] {
            assert!(!html.contains(unwanted), "{unwanted} is in\n{html}");
        }
        html
    }

    #[track_caller]
    fn contains(html: &str, all: &[&str]) {
        all.iter().for_each(|expected| assert!(html.contains(expected), "{expected} is not in\n{html}"));
    }

    #[test]
    fn all_values_are_escaped() {
        let html = page(&view(7, State::Running), &seen(3), &[]);
        contains(
            &html,
            &[
                "Variational bound",
                "<svg class=\"chart\"",
                ">run 2</text>",
                "So far run 3 has the highest objective",
                "<tr class=\"kept\"><td>3</td>",
                "<li class=\"w50\"><span>ab</span><b>3.5</b></li>",
                "<progress max=\"40\" value=\"12\"",
                "action=\"/jobs/7/cancel\"",
                "aria-label=\"33 done, 4 assigned, 3 free\"",
                "Workers that hold leases: 2. The oldest lease is 1.2 s old, with alice.",
                "gone: silent for 15s",
                "<time>00:00:00</time> &lt;script&gt;",
            ],
        );
    }

    #[test]
    fn a_queued_job_shows_its_position_and_can_be_cancelled() {
        let html = page(&view(7, State::Queued), &JobView::default(), &[]);
        contains(&html, &["<dt>jobs before it</dt><dd>2</dd>", "/cancel"]);
        assert!(!html.contains("/delete"));
        assert!(
            !html.contains("<svg")
                && !html.contains("<h2>Runs")
                && !html.contains("Workers")
                && !html.contains("Results")
        );
    }

    #[test]
    fn results_of_a_finished_job_can_be_downloaded() {
        let done = State::Done { parameters_sha256: "abc".into() };
        let results = ["model/a <b>.bin", "report.html", "segmentation.mbr.txt", "segmentation.viterbi.txt"]
            .map(|path| (path.to_owned(), 1500));
        let html = page(&view(7, done), &seen(1), &results);
        contains(
            &html,
            &[
                "href=\"/jobs/7/files/report.html\"",
                "/jobs/7/files/model/a%20%3Cb%3E.bin\" download>model/a &lt;b&gt;.bin</a>",
                "1.5 kB",
                "abc",
                "href=\"/jobs/7/results.tar.gz\"",
                "<a class=\"button\" id=\"answer\" href=\"/jobs/7/files/segmentation.mbr.txt\" download>",
                "<li class=\"answer\"><a href=\"/jobs/7/files/segmentation.mbr.txt\" download>segmentation.mbr.txt</a> <span class=\"quiet\">1.5 kB, the answer</span>",
                "<h2>Learned</h2>",
            ],
        );
        assert_eq!(html.matches("the answer</span>").count(), 1, "{html}");
        contains(&html, &["action=\"/jobs/7/delete\"", "<summary>Settings</summary>", "<pre>&lt;script&gt;"]);
        assert!(!html.contains("/cancel") && !html.contains("/resume"));
        let failed = page(&view(7, State::Failed { error: TAG.into() }), &seen(1), &[]);
        contains(
            &failed,
            &[
                "action=\"/jobs/7/resume\"",
                "<p class=\"bad\">&lt;script&gt;",
                "<h2>Learned before it failed</h2>",
            ],
        );
        let cancelled = page(&view(7, State::Cancelled), &seen(2), &[]);
        contains(
            &cancelled,
            &[
                "<h2>Learned before it was cancelled</h2>",
                "<p class=\"quiet\">Run 2 has the highest objective.",
            ],
        );
    }
}
