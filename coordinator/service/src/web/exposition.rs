//! Prometheus metrics: the state of job and fleet in the text exposition format.
//!
//! Names begin with `grammaton_` and end with their unit, and with `_total` if they are counters. No label is called `job` or
//! `instance`, which Prometheus itself sets.

use std::collections::BTreeMap;

use fleet::{FleetStatus, MemberState};
use prometheus::{Encoder, Gauge, GaugeVec, IntCounter, IntCounterVec, Opts, Registry, TextEncoder};

use crate::record::View;
use crate::status::{ACTIVITIES, JobStatus};

/// Metrics of a run, for a scrape.
pub fn exposition(job: &JobStatus, fleet: &FleetStatus) -> String {
    let page = Page(Registry::new());
    page.of_job(job);
    page.of_fleet(fleet);
    page.text()
}

/// Metrics of a service, for a scrape: its fleet, its jobs by state, and each running job by `id` and `name`.
pub fn service_exposition(
    by_state: &BTreeMap<&'static str, usize>,
    in_work: &[View],
    fleet: &FleetStatus,
) -> String {
    let page = Page(Registry::new());
    page.of_jobs(by_state, in_work, fleet);
    page.of_fleet(fleet);
    page.text()
}

/// Metrics of one scrape. All values are read at the scrape; none is kept between scrapes.
struct Page(Registry);

impl Page {
    fn text(&self) -> String {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.0.gather(), &mut text).expect("writing to memory does not fail");
        String::from_utf8(text).expect("names and numbers are text")
    }

    fn gauge(&self, name: &str, help: &str, value: f64) {
        let gauge = Gauge::new(format!("grammaton_{name}"), help).expect(SOUND);
        gauge.set(value);
        self.0.register(Box::new(gauge)).expect(SOUND);
    }

    fn counter(&self, name: &str, help: &str, value: u64) {
        let counter = IntCounter::new(format!("grammaton_{name}_total"), help).expect(SOUND);
        counter.inc_by(value);
        self.0.register(Box::new(counter)).expect(SOUND);
    }

    fn gauges<'a>(
        &self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'a str, f64)>,
    ) {
        let gauges = GaugeVec::new(Opts::new(format!("grammaton_{name}"), help), &[label]).expect(SOUND);
        values.into_iter().for_each(|(of, value)| gauges.with_label_values(&[of]).set(value));
        self.0.register(Box::new(gauges)).expect(SOUND);
    }

    fn family(&self, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
        let gauges = GaugeVec::new(Opts::new(format!("grammaton_{name}"), help), labels).expect(SOUND);
        self.0.register(Box::new(gauges.clone())).expect(SOUND);
        gauges
    }

    fn counters<'a>(
        &self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'a str, u64)>,
    ) {
        let opts = Opts::new(format!("grammaton_{name}_total"), help);
        let counters = IntCounterVec::new(opts, &[label]).expect(SOUND);
        values.into_iter().for_each(|(of, value)| counters.with_label_values(&[of]).inc_by(value));
        self.0.register(Box::new(counters)).expect(SOUND);
    }

    fn of_job(&self, job: &JobStatus) {
        let phases = ACTIVITIES.map(|known| (known, f64::from(u8::from(job.activity() == known))));
        self.gauges("phase", "1 for what the job does now, 0 for the others.", "phase", phases);
        self.gauge("run", "Run of the last finished round, from 1.", job.run as f64);
        self.gauge("runs", "Number of runs of the job.", job.runs as f64);
        self.gauge("round", "The last finished round.", job.round as f64);
        self.gauge("max_rounds", "Maximum number of rounds of a run.", job.max_rounds as f64);
        if let Some(bound) = job.bound {
            self.gauge("bound", "Objective of the last round.", bound);
        }
        self.gauge("sentences", "Number of sentences of the corpus.", job.sentences as f64);
        let rate = job.sentences_per_second;
        self.gauge("sentences_per_second", "Sentences per second of wall time in the last round.", rate);
        self.gauge("round_seconds", "Wall time of the last round.", job.round_seconds);
        let help = "Compute time of the E-step of the last round, summed over workers.";
        self.gauge("estep_busy_seconds", help, job.busy_seconds);
        if let Some(left) = job.seconds_left {
            self.gauge("left_seconds", "Upper bound of the time of the remaining rounds.", left);
        }
        if let Some(checkpoint) = job.checkpoint {
            self.gauge("checkpoint_round", "Round of the last checkpoint.", checkpoint.round as f64);
            self.gauge("checkpoint_seconds", "Time to write the last checkpoint.", checkpoint.seconds);
            self.gauge("checkpoint_bytes", "Size of the last checkpoint.", checkpoint.bytes as f64);
        }
        let fates = [("written", job.written_checkpoints), ("failed", job.failed_checkpoints)];
        self.counters("checkpoints", "Checkpoints of this process.", "fate", fates);
    }

    fn of_jobs(&self, by_state: &BTreeMap<&'static str, usize>, in_work: &[View], fleet: &FleetStatus) {
        let n_in = |state: &str| by_state.get(state).copied().unwrap_or(0) as f64;
        let states = ["queued", "running", "pausing", "stopping", "done", "failed", "cancelled"]
            .map(|state| (state, n_in(state)));
        self.gauges("jobs", "Jobs by state.", "state", states);
        let in_work: Vec<(&View, &JobStatus)> =
            in_work.iter().filter_map(|job| Some((job, job.progress.as_ref()?))).collect();
        let of_each = |name: &str, help: &str, value: &dyn Fn(&JobStatus) -> Option<f64>| {
            let gauges = self.family(name, help, &["id", "name"]);
            for (job, status) in &in_work {
                if let Some(value) = value(status) {
                    gauges.with_label_values(&[&job.record.id.to_string(), &job.record.name]).set(value);
                }
            }
        };
        of_each("job_round", "The last finished round of the job.", &|status| Some(status.round as f64));
        of_each("job_max_rounds", "Maximum number of rounds of a run of the job.", &|status| {
            Some(status.max_rounds as f64)
        });
        of_each("job_bound", "Objective of the job's last round.", &|status| status.bound);
        let help = "Sentences per second of wall time in the job's last round.";
        of_each("job_sentences_per_second", help, &|status| Some(status.sentences_per_second));
        of_each("job_left_seconds", "Upper bound of the time of the job's remaining rounds.", &|status| {
            status.seconds_left
        });
        of_each("job_waiting", "1 while no worker can compute the job's tasks, else 0.", &|status| {
            Some(f64::from(u8::from(status.waiting.is_some())))
        });
        let shards =
            self.family("job_shards", "Shards of the job's current round.", &["id", "name", "state"]);
        for (job, _) in &in_work {
            let of_job = fleet.of(job.record.account().id).shards;
            for (state, n) in [("free", of_job.free), ("assigned", of_job.assigned), ("done", of_job.done)] {
                shards
                    .with_label_values(&[&job.record.id.to_string(), &job.record.name[..], state])
                    .set(n as f64);
            }
        }
    }

    fn of_fleet(&self, fleet: &FleetStatus) {
        let shards = &fleet.shards;
        let states = [("free", shards.free), ("assigned", shards.assigned), ("done", shards.done)];
        let states = states.map(|(state, n)| (state, n as f64));
        self.gauges("shards", "Shards of the current round.", "state", states);
        let count = |of: fn(&MemberState) -> bool| {
            fleet.members.iter().filter(|member| of(&member.state)).count() as f64
        };
        let states = [
            ("healthy", count(|state| matches!(state, MemberState::Healthy))),
            ("suspect", count(|state| matches!(state, MemberState::Suspect))),
            ("draining", count(|state| matches!(state, MemberState::Draining))),
        ];
        self.gauges("members", "Connected workers.", "state", states);
        let slots = fleet.members.iter().filter(|member| !matches!(member.state, MemberState::Gone(_)));
        let slots: u32 = slots.map(|member| member.slots).sum();
        self.gauge("slots", "Tasks that the connected workers compute at the same time.", slots.into());
        let age = fleet.oldest.as_ref().map_or(0.0, |oldest| oldest.age.as_secs_f64());
        self.gauge("oldest_lease_age_seconds", "Age of the oldest lease.", age);
        let losses = fleet.losses.iter().map(|(cause, &losses)| (*cause, losses));
        self.counters("members_lost", "Workers lost, by cause.", "cause", losses);
        self.counter("leases", "Leases assigned, including backups and repeats.", fleet.attempts);
        let fates = [("accepted", fleet.accepted), ("discarded", fleet.discarded)];
        self.counters("answers", "Answers of workers, by whether they counted.", "fate", fates);
        self.counter("sent_bytes", "Bytes sent to workers.", fleet.bytes_sent);
        self.counter("received_bytes", "Bytes received from workers.", fleet.bytes_received);
        self.gauge("up_seconds", "Time since the coordinator started.", fleet.up.as_secs_f64());
    }
}

const SOUND: &str = "names and labels are constants, each used once";

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::record::tests::record;
    use crate::record::{Record, State};
    use crate::status::snapshot::tests::middle;

    #[test]
    fn a_scrape_has_every_number() {
        let (job, fleet) = middle();
        let text = exposition(&job, &fleet);
        for line in [
            "grammaton_phase{phase=\"rounds\"} 1",
            "grammaton_round 12",
            "grammaton_bound -1234.5",
            "grammaton_shards{state=\"assigned\"} 4",
            "grammaton_members{state=\"healthy\"} 1",
            "grammaton_members_lost_total{cause=\"silent\"} 1",
            "grammaton_oldest_lease_age_seconds 1.2",
            "grammaton_checkpoint_seconds 0.02",
            "grammaton_checkpoints_total{fate=\"failed\"} 1",
            "grammaton_received_bytes_total 2000",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        let (before, no_fleet) = (JobStatus::default(), FleetStatus::default());
        assert!(exposition(&before, &no_fleet).contains("grammaton_round 0\n"));
    }

    /// A scrape of a service with a running job, a queued job, and a name that needs escaping.
    fn of_service() -> String {
        let (job, fleet) = middle();
        let view = |id, name: &str, state| View {
            record: Record { name: name.into(), ..record(id, state) },
            ahead: 0,
            progress: Some(job.clone()),
        };
        let by_state = [("queued", 1), ("running", 1)].into();
        service_exposition(&by_state, &[view(1, "a \"b\" \\ <c>", State::Running)], &fleet)
    }

    #[test]
    fn running_jobs_have_their_own_numbers() {
        let text = of_service();
        for line in [
            "grammaton_jobs{state=\"running\"} 1",
            "grammaton_jobs{state=\"failed\"} 0",
            r#"grammaton_job_round{id="1",name="a \"b\" \\ <c>"} 12"#,
            r#"grammaton_job_left_seconds{id="1",name="a \"b\" \\ <c>"} 17"#,
            r#"grammaton_job_waiting{id="1",name="a \"b\" \\ <c>"} 0"#,
            "grammaton_members{state=\"healthy\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(
            text.contains("grammaton_job_shards{id=\"1\"")
                && !text.contains("id=\"2\"")
                && !text.contains("job=\""),
            "{text}"
        );
    }

    #[test]
    fn the_dashboard_uses_exported_metrics_only() {
        let dashboard = include_str!("../../../../deploy/grafana/grammaton.json");
        serde_json::from_str::<serde_json::Value>(dashboard).unwrap();
        let text = of_service();
        let mut n = 0;
        for (at, _) in dashboard.match_indices("grammaton_") {
            let rest = &dashboard[at..];
            let name =
                &rest[..rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap()];
            assert!(text.contains(&format!("# TYPE {name} ")), "{name} is not in\n{text}");
            n += 1;
        }
        assert!(n > 10, "{n}");
    }

    #[test]
    fn promtool_accepts_the_exposition() {
        let (job, fleet) = middle();
        check(&exposition(&job, &fleet));
        check(&of_service());
    }

    fn check(text: &str) {
        let promtool = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut promtool) = promtool else {
            let why = "promtool is not on the path; install Debian's package prometheus";
            return crate::requirement::missing("promtool", why);
        };
        promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = promtool.wait_with_output().unwrap();
        assert!(
            output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
            "{output:?}"
        );
    }
}
