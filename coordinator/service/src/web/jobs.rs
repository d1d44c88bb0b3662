//! The page of all jobs: newest first, a hundred per page.

use std::collections::BTreeMap;

use basics::human::duration;
use basics::human::visible;
use fleet::{FleetStatus, MemberState};
use maud::{Markup, html};
use training::metrics::Phase;

use super::events::Part;
use super::utc;
use crate::record::{Record, State, View};
use crate::status::JobStatus;
use crate::{Page, Problem, Service};

/// Number of jobs per page.
const JOBS: usize = 100;

/// The parts of page number `page`, from 1.
pub fn parts(service: &Service, fleet: &FleetStatus, page: usize) -> Result<Vec<Part>, Problem> {
    Ok(drawn(&service.page(page, JOBS)?, fleet))
}

fn drawn(page: &Page, fleet: &FleetStatus) -> Vec<Part> {
    vec![
        Part::new("numbers", numbers(&page.by_state, fleet)),
        Part::new("jobs", table(&page.jobs)),
        Part::new("pages", pager(page.page, page.pages)),
    ]
}

fn numbers(by_state: &BTreeMap<&str, usize>, fleet: &FleetStatus) -> Markup {
    let present = fleet.members.iter().filter(|member| !matches!(member.state, MemberState::Gone(_)));
    html! {
        dl.figures {
            @for state in ["running", "pausing", "stopping", "queued", "done", "failed", "cancelled"] {
                @if let Some(n) = by_state.get(state) { div { dt { (state) } dd { (n) } } }
            }
            div { dt { a href="/workers" { "workers" } } dd { (present.count()) } }
        }
    }
}

fn table(jobs: &[View]) -> Markup {
    if jobs.is_empty() {
        return html! { p { "No jobs yet. " code { "grammaton submit job.toml" } " submits one." } };
    }
    html! {
        div.scroll role="region" aria-label="All jobs" tabindex="0" {
            table.jobs {
                thead {
                    tr {
                        th { "id" } th.left { "name" } th.left { "state" } th.left { "progress or score" }
                        th.left { "owner" } th { "priority" } th { "submitted, UTC" }
                    }
                }
                tbody {
                    @for View { record, ahead, progress } in jobs {
                        @let id = record.id;
                        tr {
                            td { (id) }
                            td.name { a id={ "job-" (id) } href={ "/jobs/" (id) } { (visible(&record.name)) } }
                            td.left { (state(&record.state)) }
                            td.far { (progress_of(record, *ahead, progress.as_ref())) }
                            td.left { (visible(&record.owner)) }
                            td { (record.priority) }
                            td { (utc::minute(record.submitted)) }
                        }
                    }
                }
            }
        }
    }
}

/// Name of a state, with its colour.
pub fn state(state: &State) -> Markup {
    html! { span class={ "state " (state.name()) } { (state.name()) } }
}

fn progress_of(record: &Record, ahead: usize, progress: Option<&JobStatus>) -> Markup {
    match (&record.state, progress) {
        (State::Queued, _) => html! { span.quiet { (ahead) " before it" } },
        (State::Failed { error }, _) => html! { span.bad { (visible(error)) } },
        (State::Running | State::Pausing | State::Stopping, Some(progress)) => {
            html! {
                (bar(progress)) " " (phase(progress))
                @if let Some(left) = progress.seconds_left { " " span.quiet { "≤ " (duration(left)) " left" } }
            }
        }
        (State::Done { .. }, _) => html! {
            @if let Some((name, value)) = &record.score { (visible(name)) " " b { (visible(value)) } }
        },
        (State::Cancelled | State::Running | State::Pausing | State::Stopping, _) => html! {},
    }
}

/// Progress bar of the rounds of a job.
pub fn bar(progress: &JobStatus) -> Markup {
    let JobStatus { round, max_rounds, .. } = *progress;
    html! {
        progress max=(max_rounds.max(1)) value=(round) aria-label="rounds" { (round) " of " (max_rounds) }
    }
}

/// Description of the current phase of a job.
pub fn phase(progress: &JobStatus) -> String {
    if let Some(waiting) = &progress.waiting {
        return waiting.to_string();
    }
    match (progress.phase, progress.round) {
        (None, _) => "reading".to_owned(),
        (Some(Phase::Rounds), round) if round > 0 => {
            format!("round {round} of {}", progress.max_rounds)
        }
        (Some(phase), _) => phase.name().to_owned(),
    }
}

fn pager(page: usize, pages: usize) -> Markup {
    let link = |to: usize, name: &str| {
        html! {
            @if (1..=pages).contains(&to) { a id={ "to-" (name) } href={ "/?page=" (to) } { (name) } }
        }
    };
    html! {
        @if pages != 1 {
            nav.pages aria-label="Pages of jobs" {
                (link(page - 1, "newer")) " page " (page) " of " (pages) " " (link(page + 1, "older"))
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::Millis;
    use crate::record::tests::record;
    use fleet::{Stage, Waiting};

    /// A job with HTML in its names.
    pub fn view(id: u64, state: State) -> View {
        let record = Record {
            name: "<script>alert(1)</script>".into(),
            owner: "ann<br>".into(),
            max_workers: Some(3),
            submitted: Millis(1_000_000_000_000),
            begun: Some(Millis(1_000_000_001_000)),
            ..record(id, state)
        };
        let progress = JobStatus {
            phase: Some(Phase::Rounds),
            round: 12,
            max_rounds: 40,
            seconds_left: Some(17.0),
            ..Default::default()
        };
        View { record, ahead: 2, progress: Some(progress) }
    }

    fn html(jobs: Vec<View>, page: usize, pages: usize) -> String {
        let mut by_state = BTreeMap::new();
        jobs.iter().for_each(|job| *by_state.entry(job.record.state.name()).or_default() += 1);
        let page = Page { jobs, page, pages, by_state };
        super::super::frame::render_parts(&drawn(&page, &FleetStatus::default())).into_string()
    }

    #[test]
    fn each_state_shows_its_details() {
        let failed = State::Failed { error: "<img src=x onerror=alert(2)>".into() };
        let mut done = view(4, State::Done { parameters_sha256: "ab".into() });
        done.record.score = Some(("token F1, mbr".into(), "0.882".into()));
        let html = html(vec![done, view(3, State::Running), view(2, State::Queued), view(1, failed)], 1, 1);
        for expected in [
            "<a id=\"job-3\" href=\"/jobs/3\">&lt;script&gt;",
            "<progress max=\"40\" value=\"12\"",
            "round 12 of 40 <span class=\"quiet\">≤ 17 s left",
            "2 before it",
            "&lt;img src=x",
            "ann&lt;br&gt;",
            "token F1, mbr <b>0.882</b>",
            "<dt>queued</dt><dd>1</dd>",
        ] {
            assert!(html.contains(expected), "{expected} is not in\n{html}");
        }
        assert!(
            !html.contains("<script")
                && !html.contains("<img")
                && !html.contains("<br>")
                && !html.contains("style=")
        );
    }

    #[test]
    fn a_job_that_waits_for_workers_says_so() {
        let mut waits = view(1, State::Running);
        let waiting = Waiting { stage: Stage::Index, workers: 1, wanted: 2 };
        waits.progress.as_mut().unwrap().waiting = Some(waiting);
        assert!(html(vec![waits], 1, 1).contains("waiting for workers: 1 of 2"));
    }

    #[test]
    fn an_empty_list_names_the_command_to_submit() {
        assert!(html(Vec::new(), 1, 1).contains("No jobs yet"));
    }

    #[test]
    fn a_page_links_to_its_neighbours() {
        let page = |page| html(vec![view(1, State::Queued)], page, 3);
        assert!(page(1).contains("?page=2") && !page(1).contains(">newer</a>"));
        assert!(page(2).contains("?page=1") && page(2).contains("?page=3"));
        assert!(page(3).contains("page 3 of 3") && !page(3).contains("?page=4"));
        assert!(!html(vec![view(1, State::Queued)], 1, 1).contains("<nav"));
    }
}
