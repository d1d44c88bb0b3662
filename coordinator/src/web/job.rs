//! One job: how far it is, its curves, its runs, what they have learned, who computes, what was said.

use std::fmt::Write as _;

use shared::data::corpus::Unit;

use super::events::Part;
use super::{files, jobs, moment, workers};
use crate::fleet::{AccountStatus, FleetStatus, Shards};
use crate::human::{bytes, duration, number, whole};
use crate::metrics::{decoder_name, score_text};
use crate::report::html::{WRITTEN, escape};
use crate::report::rounds::Rounds;
use crate::report::{self, rounds, rules};
use crate::service::job_log::Line;
use crate::service::record::{JobId, Record, State, View};
use crate::service::view::JobView;
use crate::service::{Problem, Service};
use crate::snapshot::Snapshot;

/// Lines of the log.
const LINES: usize = 20;
/// Workers of the table.
const WORKERS: usize = 30;
/// Runs of the table.
const RUNS: usize = 32;

/// The parts of the page.
pub fn parts(service: &Service, id: JobId, fleet: &FleetStatus) -> Result<Vec<Part>, Problem> {
    let view = service.job(id)?;
    let results = service.files(&view.record)?;
    Ok(drawn(&view, &service.seen(id), &service.last_lines(id, LINES)?, &results, fleet))
}

fn drawn(
    view: &View,
    seen: &JobView,
    log: &[Line],
    results: &[(String, u64)],
    fleet: &FleetStatus,
) -> Vec<Part> {
    let in_work = matches!(view.record.state, State::Running | State::Stopping);
    let fleet = in_work.then_some(fleet);
    let is_own = |status: &&AccountStatus| status.account.id == view.record.account().id;
    let own = fleet.and_then(|fleet| fleet.accounts.iter().find(is_own));
    let best = seen.best();
    let curves = rounds::figures(&Rounds {
        all: &seen.rounds,
        runs: 1..seen.start.runs + 1,
        kept: best,
        objective: &seen.objective,
        is_chain: seen.is_chain,
    });
    let snapshot = seen.snapshots.get(&best).or_else(|| seen.snapshots.values().next());
    vec![
        Part { id: "head", html: head(&view.record) },
        Part { id: "actions", html: actions(&view.record) },
        Part { id: "files", html: downloads(view.record.id, results) },
        Part { id: "far", html: how_far(view, seen, best) },
        Part { id: "curves", html: curves },
        Part { id: "runs", html: runs(seen, best) },
        Part { id: "learned", html: snapshot.map_or(String::new(), learned) },
        Part { id: "sentences", html: snapshot.map_or(String::new(), |snapshot| sentences(snapshot, seen)) },
        Part { id: "shards", html: own.map_or(String::new(), shards) },
        Part { id: "workers", html: fleet.map_or(String::new(), computing) },
        Part { id: "log", html: lines(log) },
    ]
}

fn head(record: &Record) -> String {
    let Record { id, name, owner, priority, max_workers, state, submitted, begun, ended, .. } = record;
    let most = max_workers.map_or(String::new(), |most| format!(" · at most {most} workers"));
    let took =
        begun.zip(*ended).filter(|_| state.is_over()).map(|(begun, ended)| ended.0.saturating_sub(begun.0));
    let took = took.map_or(String::new(), |millis| format!(" · took {}", duration(millis as f64 / 1000.0)));
    let why = match state {
        State::Failed { error } => format!("<p class=\"bad\">{}</p>\n", escape(error)),
        State::Done { parameters_sha256 } => {
            format!("<p class=\"quiet\">Parameters <code>{}</code></p>\n", escape(parameters_sha256))
        }
        State::Queued | State::Running | State::Stopping | State::Cancelled => String::new(),
    };
    format!(
        "<h1>{} <span aria-live=\"polite\">{}</span></h1>\n<p class=\"quiet\">Job {id} of {} · priority {priority}{most} · submitted {} UTC{took}</p>\n{why}",
        escape(name),
        jobs::state(state),
        escape(owner),
        moment::minute(*submitted),
    )
}

fn actions(record: &Record) -> String {
    let id = record.id;
    let form = |what: &str, name: &str, class: &str| {
        format!(
            "<form method=\"post\" action=\"/jobs/{id}/{what}\" class=\"{class}\"><button id=\"{what}\">{name}</button></form>\n"
        )
    };
    let first = match record.state {
        State::Queued | State::Running => form("cancel", "Cancel the job", "act stop"),
        State::Failed { .. } | State::Cancelled => form("resume", "Resume the job", "act"),
        State::Stopping | State::Done { .. } => String::new(),
    };
    if !record.state.is_over() {
        return first;
    }
    let delete = form("delete", "Delete the job and its results, for good", "act stop");
    format!("{first}<details class=\"act\"><summary>Delete…</summary>{delete}</details>\n")
}

fn downloads(id: JobId, results: &[(String, u64)]) -> String {
    if results.is_empty() {
        return String::new();
    }
    let link = |path: &str| path.split('/').map(encoded).collect::<Vec<_>>().join("/");
    let mut html = String::from("<h2>Results</h2>\n");
    if results.iter().any(|(path, _)| path == files::REPORT) {
        writeln!(
            html,
            "<p><a class=\"button\" id=\"report\" href=\"/jobs/{id}/files/{}\">Open the report</a></p>",
            files::REPORT
        )
        .expect(WRITTEN);
    }
    html += "<ul class=\"files\">\n";
    for (path, size) in results.iter().filter(|(path, _)| path != files::REPORT) {
        let (to, name) = (link(path), escape(path));
        writeln!(
            html,
            "<li><a href=\"/jobs/{id}/files/{to}\" download>{name}</a> <span class=\"quiet\">{}</span></li>",
            bytes(*size)
        )
        .expect(WRITTEN);
    }
    html + "</ul>\n"
}

/// A part of a path as URLs have it.
fn encoded(part: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    part.bytes().map(letter).collect()
}

fn how_far(view: &View, seen: &JobView, best: usize) -> String {
    let status = view.progress.as_ref();
    let in_work = status.filter(|_| matches!(view.record.state, State::Running | State::Stopping));
    let mut figures: Vec<(String, String)> = Vec::new();
    let mut tell = |name: &str, value: String| figures.push((name.to_owned(), value));
    if view.record.state == State::Queued {
        tell("jobs before it", view.ahead.to_string());
    }
    if let Some(status) = in_work {
        tell("now", jobs::phase(status));
        if let Some(left) = status.seconds_left.filter(|_| status.round > 0) {
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
    if let Some(scored) = scored {
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
    let mut html = in_work.map_or(String::new(), jobs::bar);
    html += "<dl class=\"figures\">";
    for (name, value) in figures {
        write!(html, "<div><dt>{}</dt><dd>{}</dd></div>", escape(&name), escape(&value)).expect(WRITTEN);
    }
    html + "</dl>\n"
}

/// The runs side by side, if there are several.
fn runs(seen: &JobView, best: usize) -> String {
    let n = seen.start.runs;
    if n < 2 {
        return String::new();
    }
    let mut rows = String::new();
    for run in (1..=n).take(RUNS) {
        let (Some(last), scored) = seen.last(run) else { continue };
        let point = seen.start.points.get(run - 1).map_or("", |point| point);
        let scores = scored.and_then(|scored| scored.scores.values().next());
        let directed = || scored?.attachment.values().next()?.all.directed;
        let score = score_text(scores.map_or_else(directed, |scores| scores.token_f1), 3);
        let perplexity = last.held_out.map_or("–".to_owned(), |held_out| number(held_out.perplexity, &[]));
        let bound = last.bound.map_or("–".to_owned(), |bound| number(bound, &[]));
        let class = if run == best { " class=\"kept\"" } else { "" };
        writeln!(
            rows,
            "<tr{class}><td>{run}</td><td class=\"left\">{}</td><td>{}</td><td>{bound}</td><td>{score}</td><td>{perplexity}</td></tr>",
            escape(point),
            last.round
        )
        .expect(WRITTEN);
    }
    let more =
        if n > RUNS { format!("<p class=\"quiet\">And {} others.</p>\n", n - RUNS) } else { String::new() };
    format!(
        "<h2>Runs</h2>\n<p class=\"quiet\">So far run {best} has the highest objective.</p>\n<div class=\"scroll\"><table>\n<thead><tr><th>run</th>\
         <th class=\"left\">setting</th><th>round</th><th>objective</th><th>score</th><th>perplexity</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n{more}"
    )
}

fn learned(snapshot: &Snapshot) -> String {
    let rules = rules::list(&snapshot.rules);
    let mut lists = String::new();
    for strings in snapshot.strings.iter().filter(|strings| !strings.most_used.is_empty()) {
        let n = whole(strings.n as f64);
        let bars = report::bars(strings.most_used.iter().map(|(string, uses)| (&string[..], *uses)));
        write!(lists, "<h3>{} <span class=\"quiet\">{n} strings</span></h3>\n{bars}", escape(&strings.of))
            .expect(WRITTEN);
    }
    if rules.is_empty() && lists.is_empty() {
        return String::new();
    }
    let about = if lists.is_empty() {
        "rules used most, with their mean probabilities"
    } else {
        "strings used most, with their expected number of uses"
    };
    format!(
        "<h2>Learned so far</h2>\n<p class=\"quiet\">The {about}; run {}, round {}.</p>\n{rules}{lists}",
        snapshot.run, snapshot.round
    )
}

fn sentences(snapshot: &Snapshot, seen: &JobView) -> String {
    let name = if seen.is_chain { "sample" } else { decoder_name(shared::models::decode::Decoder::Viterbi) };
    // Lines with bars between segments are of tokens.
    let has_bars = |line: &String| line.contains(" | ");
    let is_of_tokens = snapshot.sentences.iter().any(|sample| sample.segmentations.iter().any(has_bars));
    report::sentences(&snapshot.sentences, &[name], if is_of_tokens { Unit::Token } else { Unit::Char })
}

/// What of a job is assigned, to how many, and since when.
fn shards(own: &AccountStatus) -> String {
    let Shards { free, assigned, done } = own.shards;
    let all = (free + assigned + done) as f64;
    let Some(stage) = own.stage.filter(|_| all > 0.0) else { return String::new() };
    let mut at = 0.0;
    let (mut bar, mut key) = (String::new(), String::new());
    for (class, name, n) in
        [("done", "done", done), ("assigned", "assigned", assigned), ("free", "free", free)]
    {
        let width = 100.0 * n as f64 / all;
        write!(bar, "<rect class=\"{class}\" x=\"{at:.2}\" width=\"{width:.2}\" height=\"6\"/>")
            .expect(WRITTEN);
        write!(key, "<li class=\"{class}\">{n} {name}</li>").expect(WRITTEN);
        at += width;
    }
    let oldest = own.oldest.as_ref().map_or(String::new(), |oldest| {
        let age = duration(oldest.age.as_secs_f64());
        let (member, n) = (escape(&oldest.member), own.members);
        format!("<p class=\"quiet\">Workers that hold leases: {n}. The oldest lease is {age} old, with {member}.</p>\n")
    });
    format!(
        "<h2>Shards <span class=\"quiet\">{stage}</span></h2>\n<svg class=\"shards\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"{done} done, {assigned} assigned, {free} free\">{bar}</svg>\n<ul class=\"key\">{key}</ul>\n{oldest}"
    )
}

fn computing(fleet: &FleetStatus) -> String {
    format!(
        "<h2>Workers <span class=\"quiet\">of all jobs together</span></h2>\n{}",
        workers::table(fleet, WORKERS)
    )
}

fn lines(log: &[Line]) -> String {
    let mut html = String::from("<h2>Log</h2>\n<ol class=\"log\">\n");
    for Line { at, text } in log {
        writeln!(html, "<li><time>{}</time> {}</li>", moment::second(*at), escape(text)).expect(WRITTEN);
    }
    html + "</ol>\n"
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::{RoundMetrics, Start};
    use crate::outcome::Sample;
    use crate::service::record::Millis;
    use crate::snapshot::Strings;
    use crate::status::snapshot::tests::middle;
    use crate::web::frame::put_together;
    use crate::web::jobs::tests::view;

    const TAG: &str = "<script>alert(1)</script>";

    fn seen(runs: usize) -> JobView {
        let round = |run: usize, round: usize| RoundMetrics {
            run,
            round,
            bound: (round > 1).then(|| -1000.0 / (round * run) as f64),
            ..Default::default()
        };
        let sample = Sample { gold: Some(TAG.into()), segmentations: vec![TAG.into()], tree: None };
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
        let html = put_together(&drawn(view, seen, &log, results, &fleet));
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
    fn whatever_it_is_made_of_is_text() {
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
    fn before_it_begins_there_is_little() {
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
    fn results_can_be_fetched_once_it_is_done() {
        let done = State::Done { parameters_sha256: "abc".into() };
        let results = [("model/a <b>.bin".to_owned(), 1500), ("report.html".to_owned(), 10)];
        let html = page(&view(7, done), &seen(1), &results);
        contains(
            &html,
            &[
                "href=\"/jobs/7/files/report.html\"",
                "/jobs/7/files/model/a%20%3Cb%3E.bin\" download>model/a &lt;b&gt;.bin</a>",
                "1.5 kB",
                "abc",
            ],
        );
        contains(&html, &["action=\"/jobs/7/delete\""]);
        assert!(!html.contains("/cancel") && !html.contains("/resume"));
        let failed = page(&view(7, State::Failed { error: TAG.into() }), &seen(1), &[]);
        contains(&failed, &["action=\"/jobs/7/resume\"", "<p class=\"bad\">&lt;script&gt;"]);
    }
}
