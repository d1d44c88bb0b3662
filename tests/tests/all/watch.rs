//! Status of a run in progress: `grammaton status`, metrics, health, and logs as JSON.

use std::io::{Read, Write};
use std::net::TcpStream;

use grammaton_tests::cluster::Coordinator;
use grammaton_tests::eventually;
use grammaton_tests::folder::{Folder, examples};
use serde_json::Value;

/// Enough rounds for their lines to fill a pipe, so that the run blocks before its end.
const JOB: &str = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n\
    [inference]\ntruncation = 500\nmax_rounds = 350\ntolerance = 0\n[output]\ncheckpoint_seconds = 0\n";

fn folder() -> Folder {
    let corpus = std::fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    Folder::new(&[("job.toml", JOB), ("corpus.txt", &corpus), ("token", "s3cret\n")])
}

/// Body of the page at `path`, if its HTTP status is `status`.
fn page(address: &str, path: &str, status: u16) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with(&format!("HTTP/1.1 {status} ")).then(|| body.to_owned())
}

#[test]
#[ignore = "slow"]
fn a_run_in_progress_reports_its_status() {
    let folder = folder();
    let more = ["--token-file", "token", "--min-workers", "2", "--http", "127.0.0.1:0", "--log", "json"];
    let coordinator = Coordinator::start(&folder, "out", &more);
    let address = coordinator.serving().to_owned();
    assert_eq!(page(&address, "/health", 200).as_deref(), Some("ok\n"));
    assert_eq!(page(&address, "/nothing", 404).as_deref(), Some(""));

    let token = folder.path("token").display().to_string();
    let mut workers = ["alice", "bob"].map(|name| coordinator.worker_with(name, &["--token-file", &token]));
    coordinator.read_to(5);

    let status: Value = serde_json::from_str(&folder.grammaton(&[
        "status",
        &coordinator.url,
        "--token-file",
        "token",
        "--json",
    ]))
    .unwrap();
    assert_eq!(
        (&status["job"]["name"], &status["job"]["phase"]),
        (&"out".into(), &"rounds".into()),
        "{status}"
    );
    assert!(status["job"]["round"].as_u64() >= Some(5) && status["job"]["bound"].is_number(), "{status}");
    assert!(status["job"]["checkpoint"]["round"].as_u64() >= Some(4), "{status}");
    let names: Vec<&Value> =
        status["fleet"]["members"].as_array().unwrap().iter().map(|member| &member["name"]).collect();
    assert!(
        names.len() == 2 && names.contains(&&"alice".into()) && names.contains(&&"bob".into()),
        "{status}"
    );

    workers[0].kill();
    let text = || folder.grammaton(&["status", &coordinator.url, "--token-file", "token"]);
    eventually(&text, || text().contains("alice") && text().contains("gone: connection lost"));
    assert!(text().contains("connection lost: the other process was killed"), "{}", text());
    assert!(text().starts_with("out: rounds, round "), "{}", text());

    let metrics = page(&address, "/metrics", 200).unwrap();
    for line in
        ["grammaton_members{state=\"healthy\"} 1", "grammaton_members_lost_total{cause=\"disconnected\"} 1"]
    {
        assert!(metrics.lines().any(|found| found == line), "{metrics}");
    }
    let value = |name: &str| -> f64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).expect(name);
        line.parse().unwrap()
    };
    assert!(value("grammaton_round") >= 5.0 && value("grammaton_sent_bytes_total") > 1000.0);

    let unknown = folder.run(&["status", &coordinator.url]);
    assert_eq!((unknown.code, unknown.log.lines().count()), (2, 1), "{}", unknown.log);
    assert!(unknown.log.contains("a token is needed"), "{}", unknown.log);

    let url = coordinator.url.clone();
    let log = coordinator.finish_with_log(&folder, "out").1;
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let with = |message: &str| lines.iter().filter(|line| line["message"] == message).collect::<Vec<_>>();
    assert_eq!(with("round").len(), 350);
    assert_eq!(with("round")[6]["round"], 7);
    assert_eq!(with("finished").len(), 1);
    let lost = with("lost");
    assert!(lost.iter().any(|line| line["member"] == "alice" && line["level"] == "WARN"), "{lost:?}");
    let waited = with("waiting for workers");
    assert_eq!(waited[0]["spans"][1]["stage"], "candidates", "{waited:?}");
    assert!(lines.iter().all(|line| line["spans"][0]["job"] == "out"), "{log}");

    let gone = folder.run(&["status", &url]);
    assert_eq!(gone.code, 2);
    assert!(gone.log.contains("no coordinator answers at this address"), "{}", gone.log);
    let nonsense = folder.run(&["status", "nonsense"]);
    assert!(nonsense.code == 2 && nonsense.log.contains("expected http://host:port"), "{}", nonsense.log);
}

#[test]
#[ignore = "slow"]
fn a_run_waits_for_workers_in_every_view_until_one_joins_and_again_after_the_last_is_lost() {
    let folder = folder();
    let coordinator = Coordinator::start(&folder, "out", &["--http", "127.0.0.1:0"]);
    let address = coordinator.serving();
    let waits = |expected: bool| {
        let status = folder.grammaton(&["status", &coordinator.url]);
        assert_eq!(status.starts_with("out: waiting for workers"), expected, "{status}");
        assert!(!expected || !status.contains(" left"), "the time left is not known: {status}");
        let metrics = page(&address, "/metrics", 200).unwrap();
        let line = format!("grammaton_phase{{phase=\"waiting\"}} {}", u8::from(expected));
        assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
    };

    let waiting = coordinator.read_event("waiting");
    let expected = serde_json::json!({"event": "waiting", "stage": "candidates", "workers": 0, "wanted": 1});
    assert_eq!(waiting, expected);
    waits(true);

    let mut alice = coordinator.worker("alice");
    let joined = coordinator.read_event("worker-joined");
    assert_eq!((&joined["name"], &joined["workers"]), (&"alice".into(), &1.into()));
    assert!(coordinator.read_event("waiting-over")["seconds"].as_f64() > Some(0.0));
    coordinator.read_to(3);
    waits(false);

    alice.kill();
    let lost = coordinator.read_event("worker-lost");
    assert_eq!(
        (&lost["name"], &lost["kind"], &lost["workers"]),
        (&"alice".into(), &"disconnected".into(), &0.into())
    );
    let waiting = coordinator.read_event("waiting");
    assert!(waiting["stage"].as_str().unwrap().starts_with("round "), "{waiting}");
    waits(true);

    let _bob = coordinator.worker("bob");
    coordinator.read_event("waiting-over");
    coordinator.finish(&folder, "out");
}
