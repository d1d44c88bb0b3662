//! The page of workers: connected and lost ones, with the cause of each loss.

use basics::human::visible;
use basics::human::{duration, whole};
use fleet::{FleetStatus, MemberInfo, MemberState};
use maud::{Markup, html};

use super::events::Part;

/// Maximum number of workers on the page.
const WORKERS: usize = 1000;

/// The parts of the page.
pub fn parts(fleet: &FleetStatus) -> Vec<Part> {
    vec![Part::new("numbers", numbers(fleet)), Part::new("workers", table(fleet, WORKERS))]
}

fn numbers(fleet: &FleetStatus) -> Markup {
    let is_gone = |member: &&MemberInfo| matches!(member.state, MemberState::Gone(_));
    let present: Vec<&MemberInfo> = fleet.members.iter().filter(|member| !is_gone(member)).collect();
    let slots: u32 = present.iter().map(|member| member.slots).sum();
    let leases: usize = present.iter().map(|member| member.leases).sum();
    let oldest = fleet.oldest.as_ref().map(|oldest| duration(oldest.age.as_secs_f64()));
    let figures = [
        ("workers", Some(present.len().to_string())),
        ("tasks at a time", Some(slots.to_string())),
        ("leases", Some(leases.to_string())),
        ("oldest lease", oldest),
        ("answers", Some(whole(fleet.accepted as f64))),
        ("up", Some(duration(fleet.up.as_secs_f64()))),
    ];
    let losses: Vec<String> = fleet.losses.iter().map(|(cause, n)| format!("{n} {cause}")).collect();
    html! {
        dl.figures {
            @for (name, value) in figures {
                @if let Some(value) = value { div { dt { (name) } dd { (value) } } }
            }
        }
        @if !losses.is_empty() { p.quiet { "Gone since the start: " (losses.join(", ")) "." } }
    }
}

/// Table of at most `limit` workers: connected ones, then lost ones from the latest, each with the cause.
pub fn table(fleet: &FleetStatus, limit: usize) -> Markup {
    let (gone, present): (Vec<&MemberInfo>, Vec<&MemberInfo>) =
        fleet.members.iter().partition(|member| matches!(member.state, MemberState::Gone(_)));
    let total = gone.len() + present.len();
    if total == 0 {
        return html! { p { "No worker has joined yet. " code { "grammaton worker" } " joins from any machine." } };
    }
    let age = |member: &MemberInfo| member.oldest_lease.map(|age| duration(age.as_secs_f64()));
    html! {
        div.scroll role="region" aria-label="Workers" tabindex="0" {
            table.workers {
                thead {
                    tr {
                        th { "worker" } th.left { "state" } th { "slots" } th { "tasks" } th { "tasks/s" }
                        th { "leases" } th { "oldest" } th { "losses" }
                    }
                }
                tbody {
                    @for member in present.into_iter().chain(gone.into_iter().rev()).take(limit) {
                        tr {
                            td { (visible(&member.name)) }
                            td.left { (state(member)) }
                            td { (member.slots) }
                            td { (member.tasks_done) }
                            td { (rate(member)) }
                            td { (member.leases) }
                            td { (age(member).unwrap_or("–".to_owned())) }
                            td { (member.losses) }
                        }
                    }
                }
            }
        }
        @if total > limit { p.quiet { "And " (total - limit) " others." } }
    }
}

fn state(member: &MemberInfo) -> Markup {
    let (class, text) = match &member.state {
        MemberState::Healthy => match member.probation() {
            Some(reason) => ("stopping", format!("on probation: {reason}")),
            None => ("running", "healthy".to_owned()),
        },
        MemberState::Suspect => ("stopping", "suspect".to_owned()),
        MemberState::Draining => ("queued", "draining".to_owned()),
        MemberState::Gone(cause) => ("failed", format!("gone: {cause}")),
    };
    html! { span class={ "state " (class) } { (text) } }
}

/// Answers per second since the worker joined.
fn rate(member: &MemberInfo) -> String {
    let seconds = member.joined.as_secs_f64();
    match member.state {
        MemberState::Gone(_) => "–".to_owned(),
        _ if seconds < 1.0 => "–".to_owned(),
        _ => format!("{:.1}", member.tasks_done as f64 / seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::snapshot::tests::middle;

    #[test]
    fn losses_have_their_cause_and_names_are_escaped() {
        let (_, mut fleet) = middle();
        fleet.members[0].name = "<b>alice</b>".into();
        (fleet.members[0].on_probation, fleet.members[0].failures) = (true, 3);
        let html = super::super::frame::render_parts(&parts(&fleet)).into_string();
        for expected in [
            "&lt;b&gt;alice",
            "failed 3 tasks that others answered",
            "gone: silent for 15s",
            "Gone since the start: 1 silent.",
            "<td>0.7</td>",
            ">1.2 s<",
        ] {
            assert!(html.contains(expected), "{expected} is not in\n{html}");
        }
        assert!(!html.contains("<b>alice") && !html.contains("style="));
        assert!(table(&fleet, 1).0.contains("And 1 others"));
        assert!(table(&FleetStatus::default(), 1).0.contains("No worker has joined"));
    }
}
