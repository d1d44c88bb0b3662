//! `report.html`: one page with the course and the results of a run.
//!
//! It begins with the verdict, then has what was found, and after that how it was trained. The page is self-contained and without network access; its only
//! script sorts and filters sentences. It follows the light or dark scheme of the system and fits a phone. All text from the user's files is escaped, by type
//! (`markup`).

pub mod arcs;
pub mod chart;
mod dependencies;
mod errors;
pub mod markup;
pub mod rounds;
pub mod rules;
pub mod sentences;
mod settings;
pub mod tree;
mod words;

use std::collections::BTreeSet;
use std::ops::Range;

use basics::human::{duration, number, perplexity, whole};
use grammaton::data::eval::brackets::BracketScores;
use grammaton::grammar::tree::Tree;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::job::{Job, Method, Point};
use crate::metrics::{
    BracketsByDecoder, Grade, RoundMetrics, Scores, Summary, TestScores, recommended_first,
    recommended_scores, score_text,
};
use crate::model::{self, SavedModel};
use crate::outcome::{Outcome, Sample};

/// Style sheet of reports and of the pages of a service.
pub const STYLE: &str = include_str!("report/style.css");

/// Content of the page.
pub struct Report<'a> {
    /// The job.
    pub job: &'a Job,
    /// All rounds, of all runs.
    pub rounds: &'a [RoundMetrics],
    /// The result.
    pub outcome: &'a Outcome,
    /// The saved model.
    pub saved: &'a SavedModel,
    /// The saved summary.
    pub summary: &'a Summary,
}

impl Report<'_> {
    /// Number of the kept run, from 1.
    fn kept(&self) -> usize {
        self.outcome.result.run
    }

    /// Index of the setting of the kept run.
    fn point(&self) -> usize {
        self.job.runs().nth(self.kept() - 1).map_or(0, |(point, _)| point)
    }

    /// Method of the kept run.
    fn method(&self) -> Method {
        self.job.method_of(self.kept())
    }

    /// Numbers of the runs of a setting.
    fn runs_of(&self, point: usize) -> Range<usize> {
        let restarts = |points: &[Point]| points.iter().map(|point| point.inference.restarts).sum::<usize>();
        let first = restarts(&self.job.points[..point]) + 1;
        first..first + restarts(&self.job.points[point..point + 1])
    }

    /// Numbers of the runs of the kept setting.
    fn runs(&self) -> Range<usize> {
        self.runs_of(self.point())
    }
}

/// Renders the page.
pub fn render(report: &Report<'_>) -> String {
    let title = report.job.title();
    markup::visible(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Grammaton" }
                style { (PreEscaped(STYLE)) (PreEscaped(markup::bar_lengths())) }
            }
            body {
                main {
                    p.quiet { "Grammaton, training report · " (grammar_name(report.job)) }
                    h1 { (title) }
                    (verdict(report))
                    (words::section(report))
                    (notices(report))
                    (errors::section(report))
                    (sentences::section(report))
                    (scores(report))
                    (brackets(&report.summary.result.brackets))
                    (dependencies::section(report))
                    (figures(report))
                    (settings::section(report))
                    (rounds::section(report))
                    (learned(report))
                    (drawn_tree(report))
                    (timings(report))
                    (job(report))
                }
                script { (PreEscaped(sentences::SCRIPT)) }
            }
        }
    })
}

fn grammar_name(job: &Job) -> String {
    let text = job.model.grammar.to_string();
    text.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
}

/// The verdict, with a colour.
fn verdict(report: &Report<'_>) -> Markup {
    let Some(verdict) = &report.summary.verdict else { return html! {} };
    let grade = match verdict.grade {
        Grade::Good => "good",
        Grade::Doubtful => "doubtful",
        Grade::Bad => "bad",
    };
    let is_of_text = report.outcome.lexicon.is_some();
    html! {
        div #verdict class={ "verdict " (grade) } {
            p { (verdict.text) }
            @if !verdict.advice.is_empty() {
                p { (verdict.advice) }
                @if report.method().is_sampler() && is_of_text {
                    p.quiet {
                        code { "inference.max_rounds" } " is " code { "--sweeps" } " of " code { "grammaton segment" } " and "
                        code { "morphemes" } ", " code { "inference.restarts" } " is " code { "--chains" } "."
                    }
                }
            }
        }
    }
}

fn figures(report: &Report<'_>) -> Markup {
    let summary = report.summary;
    let mut figures: Vec<(String, String)> = Vec::new();
    if let Some(bound) = summary.result.bound {
        figures.push(("objective".to_owned(), number(bound, &[])));
    }
    if let Some(held_out) = summary.result.held_out {
        figures.push(("held-out perplexity".to_owned(), perplexity(held_out.perplexity)));
    }
    if let Some(r_hat) = summary.result.r_hat {
        figures.push(("R-hat".to_owned(), format!("{r_hat:.3}")));
    }
    if let Some(draws) = summary.result.effective_sample_size {
        figures.push(("effective draws".to_owned(), format!("{draws:.0}")));
    }
    let rounds = if report.method().is_sampler() {
        "rounds"
    } else if summary.result.converged {
        "rounds, converged"
    } else {
        "rounds, not converged"
    };
    figures.push((rounds.to_owned(), summary.result.rounds_run.to_string()));
    if summary.result.rounds != summary.result.rounds_run {
        figures.push(("round kept".to_owned(), summary.result.rounds.to_string()));
    }
    figures.extend(summary.result.test.iter().flat_map(test_figures));
    let timings = summary.timings;
    figures.push(("time".to_owned(), duration(timings.preprocess + timings.rounds + timings.decode)));
    figures.push(("sentences".to_owned(), whole(summary.sentences as f64)));
    html! {
        h2 { "The run" }
        dl.figures {
            @for (name, value) in figures { div { dt { (name) } dd { (value) } } }
        }
        @if !summary.choice.is_empty() { p.quiet { (summary.choice) "." } }
    }
}

/// Figures of the sentences of `corpus.test`.
fn test_figures(test: &TestScores) -> Vec<(String, String)> {
    let perplexity =
        test.predicted.map(|predicted| ("perplexity".to_owned(), perplexity(predicted.perplexity)));
    let scores = recommended_scores(&test.scores, &test.brackets, &test.attachment);
    perplexity.into_iter().chain(scores).map(|(name, value)| (format!("test {name}"), value)).collect()
}

fn notices(report: &Report<'_>) -> Markup {
    let notices = &report.summary.notices;
    html! {
        @if !notices.is_empty() {
            h2 { "Notices" }
            ul.notices { @for notice in notices { li { (notice) } } }
        }
    }
}

/// The scores of the recommended decoder, and below them the F1 of the others.
fn scores(report: &Report<'_>) -> Markup {
    let all = &report.summary.result.scores;
    let decoders = recommended_first(all.keys().map(String::as_str));
    let Some((&first, others)) = decoders.split_first() else { return html! {} };
    let exact = |scores: &Scores| format!("{} of {}", scores.exact, scores.sentences);
    html! {
        h2 { "Scores" }
        p.quiet { "Of " code { (first) } ", the recommended decoder." }
        div.scroll {
            table {
                thead { tr { th {} th { "precision" } th { "recall" } th { "F1" } } }
                tbody {
                    @for (kind, parts) in all[first].kinds() {
                        @let [precision, recall, f1] = parts.map(|score| score_text(score, 4));
                        tr { td { (kind) } td { (precision) } td { (recall) } td.main { (f1) } }
                    }
                    @for (name, f1) in all[first].baselines() {
                        tr.quiet { td { "baseline: tokens, " (name) } td {} td {} td { (score_text(f1, 4)) } }
                    }
                    tr { td { "exact sentences" } td colspan="3" { (exact(&all[first])) } }
                }
            }
        }
        @if !others.is_empty() {
            h3 { "F1 of other decoders" }
            div.scroll {
                table {
                    thead {
                        tr {
                            th {}
                            @for (kind, _) in Scores::default().kinds() { th { (kind) } }
                            th { "exact sentences" }
                        }
                    }
                    tbody {
                        @for decoder in others {
                            tr {
                                td { (decoder) }
                                @for (_, [_, _, f1]) in all[*decoder].kinds() { td { (score_text(f1, 4)) } }
                                td { (exact(&all[*decoder])) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Scores of the trees of held-out sentences, the recommended decoder first.
fn brackets(all: &BracketsByDecoder) -> Markup {
    let decoders = recommended_first(all.keys().map(String::as_str));
    let Some(first) = decoders.first().copied() else { return html! {} };
    html! {
        h2 { "Scores" }
        p.quiet {
            "Labelled brackets of " (all[first].sentences) " held-out sentences. " code { (first) } " is the recommended decoder."
        }
        div.scroll {
            table {
                thead {
                    tr {
                        th {} th { "precision" } th { "recall" } th { "F1" } th { "F1 without labels" } th { "tags" } th { "exact" }
                        th { "without a tree" }
                    }
                }
                tbody {
                    @for decoder in decoders {
                        @let BracketScores { labelled, unlabelled, tagging, exact, unparsed, .. } = all[decoder];
                        tr {
                            td { (decoder) }
                            td { (score_text(labelled.precision, 4)) }
                            td { (score_text(labelled.recall, 4)) }
                            td.main { (score_text(labelled.f1, 4)) }
                            td { (score_text(unlabelled.f1, 4)) }
                            td { (score_text(tagging, 4)) }
                            td { (score_text(exact, 4)) }
                            td { (unparsed) }
                        }
                    }
                    tr.quiet {
                        td { "baseline: right-branching" } td {} td {} td {}
                        td { (score_text(all[first].right_branching, 4)) } td {} td {} td {}
                    }
                }
            }
        }
    }
}

/// Maximum number of strings per adapted nonterminal.
const STRINGS: usize = 60;

fn learned(report: &Report<'_>) -> Markup {
    let (rules, strings) = (rules::section(report.saved), strings(report));
    html! {
        @if !(rules.0.is_empty() && strings.0.is_empty()) {
            h2 { "What was learned" }
            (rules)
            (strings)
        }
    }
}

fn strings(report: &Report<'_>) -> Markup {
    let Some(model) = report.saved.model.of_grammar() else { return html! {} };
    let most_used = |at: usize| Some(model::top(report.saved, at, STRINGS)).filter(|top| !top.is_empty());
    let sticks = model.lexicon.sticks.iter().enumerate();
    let lists: Vec<_> = sticks.filter_map(|(at, stick)| Some((at, stick, most_used(at)?))).collect();
    if lists.is_empty() {
        return html! {};
    }
    let about = |at: usize, n_strings: usize| match model.adaptor().map(|params| &params.sticks[at]) {
        Some(stick) => format!(
            "{} strings; discount {:.3}, concentration {:.3}",
            whole(stick.order.len() as f64),
            stick.discount,
            stick.concentration,
        ),
        None => format!("one of {} strings", whole(n_strings as f64)),
    };
    html! {
        p {
            "The strings used most, with their expected number of uses. All of them are in "
            code { "model/sticks.tsv" }
            "."
        }
        @for (at, stick, top) in lists {
            h3 { (model.grammar.name(stick.symbol)) }
            p.quiet { (about(at, stick.strings.len())) }
            (bars(top.iter().map(|entry| (&entry.string[..], entry.uses))))
        }
    }
}

/// Bars of strings with their expected uses, most used first.
pub fn bars<'a>(strings: impl Iterator<Item = (&'a str, f64)>) -> Markup {
    let strings: Vec<(&str, f64)> = strings.collect();
    let most = strings.first().map_or(1.0, |first| first.1).max(f64::MIN_POSITIVE);
    markup::bars(strings.into_iter().map(|(string, uses)| (string, uses / most, format!("{uses:.1}"))))
}

fn drawn_tree(report: &Report<'_>) -> Markup {
    let Some(decoding) = report.outcome.with_trees() else { return html! {} };
    let names = |model: &grammaton::models::Model| {
        let sticks = model.lexicon.sticks.iter();
        sticks.map(|stick| model.grammar.name(stick.symbol).to_owned()).collect::<BTreeSet<String>>()
    };
    let with_strings = report.saved.model.of_grammar().map(names).unwrap_or_default();
    let keep = |label: &str| with_strings.contains(label);
    let read = |sample: &Sample| tree::drawn(&Tree::parse(sample.tree.as_deref()?).ok()?, &keep, 12);
    let mut trees = report.outcome.samples.iter().filter_map(read);
    let Some(drawn) = trees.find(|tree| (3..=12).contains(&tree::n_leaves(tree))) else {
        return html! {};
    };
    let separator = report.saved.unit.separators().0;
    html! {
        h2 { "A parse" }
        p.quiet {
            "By " (decoding.name) "; only nonterminals with strings of their own are drawn. All parses are in "
            code { "parses.txt" }
            "."
        }
        div.scroll { (tree::svg(&drawn, separator)) }
    }
}

fn timings(report: &Report<'_>) -> Markup {
    let summary = report.summary;
    let parts = [
        ("preparing", summary.timings.preprocess),
        ("training", summary.timings.rounds),
        ("decoding", summary.timings.decode),
    ];
    let total: f64 = parts.iter().map(|part| part.1).sum::<f64>().max(f64::MIN_POSITIVE);
    let workers =
        if summary.workers == 1 { "1 worker".to_owned() } else { format!("{} workers", summary.workers) };
    html! {
        h2 { "Time" }
        div.bar {
            @for (at, (_, seconds)) in parts.iter().enumerate() {
                span class={ "s" (at) } style=(format_args!("width:{:.2}%", 100.0 * seconds / total)) {}
            }
        }
        ul.key {
            @for (at, (name, seconds)) in parts.iter().enumerate() {
                li class={ "s" (at) } { (name) " " (format_args!("{seconds:.2} s")) }
            }
        }
        p.quiet { "Wall time, with " (workers) "." }
    }
}

fn job(report: &Report<'_>) -> Markup {
    let summary = report.summary;
    html! {
        details {
            summary { "The job" }
            pre { (report.job.to_toml()) }
        }
        footer {
            p {
                "Grammaton " (summary.version) ", seed " (summary.seed)
                ". The same job, data and seed give the same parameters on any number of workers:"
                br;
                code { (summary.result.parameters_sha256) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use grammaton::data::eval::segmentation::Prf;

    use super::*;
    use crate::events::{Observer, RunEvent};
    use crate::fixture;
    use crate::metrics::{HeldOut, PointSummary, RunResult};
    use crate::outcome::FleetUse;

    /// Collects the rounds.
    struct Rounds(Vec<RoundMetrics>);

    impl Observer for Rounds {
        fn on(&mut self, event: &RunEvent) -> anyhow::Result<()> {
            if let RunEvent::RoundFinished(round) = event {
                self.0.push((**round).clone());
            }
            Ok(())
        }
    }

    /// The page of the synthetic run, with additional lines in its job, after `change`.
    fn page(more: &str, change: impl FnOnce(&mut Vec<RoundMetrics>, &mut Outcome)) -> String {
        let text =
            format!("[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"c<.txt\"\n[inference]\n{more}");
        let job = Job::parse(&text, "job.toml", Path::new("/"), &[]).unwrap();
        let mut rounds = Rounds(Vec::new());
        let mut outcome = fixture::train(&mut rounds).unwrap();
        change(&mut rounds.0, &mut outcome);
        let summary = outcome.summary(&job, &FleetUse::default());
        let saved = job.corpus.saved(outcome.model.clone());
        let rounds = &rounds.0;
        let page = render(&Report { job: &job, rounds, outcome: &outcome, saved: &saved, summary: &summary });
        assert_eq!(page.matches("<script").count(), 1, "there is no script but that of the page");
        assert!(page.contains(&format!("<script>{}</script>", sentences::SCRIPT)));
        for unwanted in ["NaN", "http://", "https://", "c<.txt", "nothing"] {
            assert!(!page.contains(unwanted), "{unwanted}");
        }
        page
    }

    fn contains(page: &str, all: &[&str]) {
        all.iter().for_each(|expected| assert!(page.contains(expected), "{expected} is not in\n{page}"));
    }

    fn lacks(page: &str, all: &[&str]) {
        all.iter().for_each(|unwanted| assert!(!page.contains(unwanted), "{unwanted} is in\n{page}"));
    }

    #[test]
    fn a_single_run_shows_its_sections() {
        let page = page("", |_, _| {});
        contains(
            &page,
            &["Variational bound", "Token F1", "Strings in use", "Seconds per round", "c&lt;.txt"],
        );
        let of_others = ["Settings", "R-hat", "Temperature", "proposed", "erplexity", "run 1", "effective"];
        lacks(&page, &of_others);
    }

    #[test]
    fn the_words_found_come_first() {
        let with_words = page("", |_, _| {});
        contains(
            &with_words,
            &[
                "<h2>Words found</h2><p class=\"quiet\">The most frequent of 40 distinct segments by <code>mbr</code>",
                "<tr><td>6</td><td class=\"main\">6</td><td>0.75</td><td class=\"left\">lUk D*z 6 b7 wIT hIz h&amp;t</td></tr>",
            ],
        );
        assert_eq!(with_words.find("<h2>"), with_words.find("<h2>Words found"), "it is the first section");
        let without_samples = page("", |_, outcome| {
            outcome.lexicon.iter_mut().flatten().for_each(|entry| entry.share = None);
        });
        lacks(&without_samples, &["<th>share</th>", "The share is"]);
        lacks(&page("", |_, outcome| outcome.lexicon = None), &["Words found"]);
    }

    #[test]
    fn the_verdict_is_the_first_thing_below_the_title() {
        let page = page("", |_, _| {});
        let verdict = "<h1>c&lt;.txt</h1><div id=\"verdict\" class=\"verdict good\"><p>Token F1 is 0.900 (mbr), above the baselines, ";
        contains(&page, &[verdict, "<title>c&lt;.txt · Grammaton</title>"]);
        let below = |_: &mut Vec<RoundMetrics>, outcome: &mut Outcome| {
            outcome.result.scores.values_mut().for_each(|scores| scores.token_f1_every_symbol = Some(0.99));
        };
        contains(
            &super::tests::page("", below),
            &["class=\"verdict bad\"", "<p>Try another model.grammar, "],
        );
    }

    #[test]
    fn a_title_of_the_job_file_is_that_of_the_report() {
        let title = "[output]\ntitle = \"my <b>words</b>\"\n";
        contains(&page(title, |_, _| {}), &["<h1>my &lt;b&gt;words&lt;/b&gt;</h1>", "<title>my &lt;b&gt;"]);
    }

    #[test]
    fn errors_are_shown_if_there_is_gold() {
        use crate::errors::{Errors, OfKind, Pair};
        let with_errors = page("", |_, outcome| {
            let pair = Pair { apart: "<b s".into(), joined: "<bs".into(), count: 3, example: "&<b s".into() };
            let cuts = OfKind { n: 5, most: vec![pair] };
            outcome.errors = Some(Errors { cuts, joins: OfKind::default() });
        });
        contains(
            &with_errors,
            &[
                "<h3>Wrong cuts: 5</h3>",
                "<h3>Wrong joins: 0</h3>",
                "<td>&lt;bs</td><td class=\"left off\">&lt;b s</td>",
            ],
        );
        lacks(&page("", |_, _| {}), &["<h2>Errors"]);
    }

    #[test]
    fn rounds_without_measurements_have_no_section() {
        lacks(&page("", |rounds, _| rounds.clear()), &["<h2>Rounds", "svg class=\"chart\""]);
    }

    #[test]
    fn chains_share_charts() {
        let page = page("method = \"hastings\"\nrestarts = 2\nanneal_from = 2\n", |rounds, outcome| {
            for at in 0..rounds.len() {
                let round = &mut rounds[at];
                (round.acceptance, round.changed) = (Some(0.9), Some(0.3));
                round.temperature = (at < 3).then_some(2.0);
                rounds.push(RoundMetrics { run: 2, r_hat: Some(1.0), ..rounds[at].clone() });
            }
            outcome.result.run = 2;
            outcome.result.bounds = vec![Some(-198_024.1); 2];
            (outcome.result.r_hat, outcome.result.effective_sample_size) = (Some(1.0), Some(17.3));
        });
        contains(
            &page,
            &[
                "Log posterior of trees and tables, up to a constant<",
                "The same, second half of the rounds",
                "2 runs, of which run 2 was kept.",
                "class=\"line behind\"",
                ">run 1</text>",
                ">R-hat 1.01: mixed</text>",
                "The chains have mixed (R-hat 1.000).",
                "Share of the proposed trees",
                "Temperature",
                "<div id=\"verdict\" class=\"verdict good\">",
                "<dt>R-hat</dt><dd>1.000</dd>",
                "<dt>effective draws</dt><dd>17</dd>",
            ],
        );
        lacks(&page, &["Settings", "Variational", "converged"]);
    }

    /// Two settings of two runs each; the third run is kept.
    fn grid(rounds: &mut Vec<RoundMetrics>, outcome: &mut Outcome) {
        for at in 0..rounds.len() {
            for run in 2..=4 {
                rounds.push(RoundMetrics { run, ..rounds[at].clone() });
            }
        }
        let point = |name: &str, run, bound| PointSummary {
            name: name.to_owned(),
            result: RunResult { run, rounds: 40, bound: Some(bound), ..outcome.result.clone() },
            ..PointSummary::default()
        };
        outcome.points = vec![point("concentration=1", 1, -5.0), point("concentration=1000", 3, -4.0)];
        outcome.result.run = 3;
    }

    const GRID: &str = "restarts = 2\n[[sweep]]\nconcentration = [1, 1000]\n";

    #[test]
    fn settings_are_compared() {
        let page = page(GRID, grid);
        contains(
            &page,
            &[
                "<code>concentration=1000</code> was kept: its objective is the highest",
                "<tr class=\"kept\"><td>concentration=1000</td><td>3</td><td>40</td><td>−4.000</td><td>0.012</td>",
                "<tr><td>concentration=1</td><td>1</td>",
                "Tokens and exact sentences by concentration, mbr",
                ">10⁰<",
                ">10³<",
                ">exact sentences</text>",
                "2 runs of the setting <code>concentration=1000</code>, of which run 3 was kept.",
                ">run 4</text>",
            ],
        );
        lacks(&page, &["held-out log-likelihood", "<th>R-hat", ">run 1</text>"]);
    }

    #[test]
    fn held_out_sentences_choose_the_setting_if_there_are_any() {
        let page = page(GRID, |rounds, outcome| {
            grid(rounds, outcome);
            let held_out = HeldOut { log_likelihood: -31.0, perplexity: 9.25, ..HeldOut::default() };
            outcome.points[1].result.held_out = Some(held_out);
            outcome.result.held_out = Some(held_out);
            rounds
                .iter_mut()
                .filter(|round| round.run == 3)
                .for_each(|round| round.held_out = Some(held_out));
        });
        contains(
            &page,
            &[
                "its held-out sentences are the most probable",
                "<th>held-out log-likelihood</th>",
                "<td>−31.000</td><td>9.250</td>",
                "<td>–</td><td>–</td>",
                "Perplexity of held-out sentences",
                "<dt>held-out perplexity</dt><dd>9.250</dd>",
            ],
        );
    }

    #[test]
    fn the_kept_round_and_test_scores_are_shown() {
        let page = page("", |_, outcome| {
            let predicted = |perplexity| Some(HeldOut { perplexity, ..HeldOut::default() });
            (outcome.result.rounds, outcome.result.held_out) = (30, predicted(9.25));
            let scores = outcome.result.scores.clone();
            outcome.result.test =
                Some(TestScores { predicted: predicted(8.5), scores, ..TestScores::default() });
        });
        contains(
            &page,
            &[
                "<dt>rounds, converged</dt><dd>40</dd>",
                "<dt>round kept</dt><dd>30</dd>",
                "<dt>test perplexity</dt><dd>8.500</dd>",
                "<dt>test token F1, mbr</dt>",
                "round 30 of 40 was chosen by held-out log-likelihood; corpus.test had no part in it.",
            ],
        );
    }

    #[test]
    fn trees_have_a_table_of_their_scores() {
        let page = page("", |_, outcome| {
            let labelled = Prf { precision: Some(0.5), recall: Some(0.25), f1: Some(1.0 / 3.0) };
            let found = BracketScores {
                labelled,
                unlabelled: labelled,
                right_branching: Some(0.375),
                tagging: Some(0.9),
                exact: Some(0.1),
                sentences: 8,
                unparsed: 1,
            };
            outcome.result.brackets =
                ["viterbi", "max-rule"].map(|decoder| (decoder.to_owned(), found)).into();
        });
        let rows = [
            "<td>max-rule</td><td>0.5000</td><td>0.2500</td><td class=\"main\">0.3333</td>",
            "<td>viterbi</td><td>0.5000</td><td>0.2500</td>",
        ];
        contains(&page, &rows);
        assert!(rows.map(|row| page.find(row)).is_sorted(), "the recommended decoder comes first");
    }

    #[test]
    fn names_of_settings_are_escaped() {
        let page = page(GRID, |rounds, outcome| {
            grid(rounds, outcome);
            outcome.points[0].name = "start_from=<a&b>".to_owned();
        });
        contains(&page, &["start_from=&lt;a&amp;b&gt;"]);
        lacks(&page, &["<a&b>", "Tokens and exact sentences"]);
    }
}
