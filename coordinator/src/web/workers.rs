//! Who computes, and who was lost, and why.

use std::fmt::Write as _;

use super::events::Part;
use crate::fleet::{FleetStatus, MemberInfo, MemberState};
use crate::human::{duration, whole};
use crate::report::html::{WRITTEN, escape};

/// Workers of the page.
const WORKERS: usize = 1000;

/// The parts of the page.
pub fn parts(fleet: &FleetStatus) -> Vec<Part> {
    vec![Part { id: "numbers", html: numbers(fleet) }, Part { id: "workers", html: table(fleet, WORKERS) }]
}

fn numbers(fleet: &FleetStatus) -> String {
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
    let mut html = String::from("<dl class=\"figures\">");
    for (name, value) in figures {
        let Some(value) = value else { continue };
        write!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>").expect(WRITTEN);
    }
    html += "</dl>\n";
    if !fleet.losses.is_empty() {
        let losses = fleet.losses.iter().map(|(cause, n)| format!("{n} {}", escape(cause)));
        let losses = losses.collect::<Vec<_>>().join(", ");
        writeln!(html, "<p class=\"quiet\">Gone since the start: {losses}.</p>").expect(WRITTEN);
    }
    html
}

/// `limit` of the workers at most: those that are there, and of those that are gone the last ones first, each with the cause.
pub fn table(fleet: &FleetStatus, limit: usize) -> String {
    let (gone, present): (Vec<&MemberInfo>, Vec<&MemberInfo>) =
        fleet.members.iter().partition(|member| matches!(member.state, MemberState::Gone(_)));
    let total = gone.len() + present.len();
    if total == 0 {
        return "<p>Nobody computes yet. <code>grammaton-worker</code> joins from any machine.</p>\n"
            .to_owned();
    }
    let mut rows = String::new();
    for member in present.into_iter().chain(gone.into_iter().rev()).take(limit) {
        let age = member.oldest_lease.map_or("–".to_owned(), |age| duration(age.as_secs_f64()));
        writeln!(
            rows,
            "<tr><td>{}</td><td class=\"left\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{age}</td><td>{}</td></tr>",
            escape(&member.name),
            state(member),
            member.slots,
            member.tasks_done,
            rate(member),
            member.leases,
            member.losses,
        )
        .expect(WRITTEN);
    }
    let more = match total.saturating_sub(limit) {
        0 => String::new(),
        more => format!("<p class=\"quiet\">And {more} others.</p>\n"),
    };
    format!(
        "<div class=\"scroll\" role=\"region\" aria-label=\"Workers\" tabindex=\"0\"><table class=\"workers\">\n<thead><tr><th>worker</th>\
         <th class=\"left\">state</th><th>slots</th><th>tasks</th><th>tasks/s</th><th>leases</th><th>oldest</th><th>losses</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n{more}"
    )
}

fn state(member: &MemberInfo) -> String {
    let (class, text) = match &member.state {
        MemberState::Healthy => match member.probation() {
            Some(reason) => ("stopping", format!("on probation: {reason}")),
            None => ("running", "healthy".to_owned()),
        },
        MemberState::Suspect => ("stopping", "suspect".to_owned()),
        MemberState::Draining => ("queued", "draining".to_owned()),
        MemberState::Gone(cause) => ("failed", format!("gone: {}", escape(&cause.to_string()))),
    };
    format!("<span class=\"state {class}\">{text}</span>")
}

/// Answers by the time since it joined.
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
    fn losses_have_their_cause_and_names_are_text() {
        let (_, mut fleet) = middle();
        fleet.members[0].name = "<b>alice</b>".into();
        (fleet.members[0].on_probation, fleet.members[0].failures) = (true, 3);
        let html = super::super::frame::put_together(&parts(&fleet));
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
        assert!(table(&fleet, 1).contains("And 1 others"));
        assert!(table(&FleetStatus::default(), 1).contains("Nobody computes"));
    }
}
