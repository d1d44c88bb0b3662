//! Tests of the page over a socket, by clients with and without the needed roles.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use fleet::access::{Role, Tokens, line};
use fleet::{Fleet, FleetConfig};

use super::*;
use crate::Limits;
use crate::job_process::Processes;
use crate::job_store::JobStore;
use crate::record::{self, Millis, Record, State};

/// A service with a finished and a failed job, and a finished one on text, all with HTML in their names.
struct Served {
    address: SocketAddr,
    folder: tempfile::TempDir,
    _page: Page,
}

fn record(id: u64, state: State) -> Record {
    Record {
        name: "<b>job</b>".into(),
        begun: Some(Millis(2)),
        ended: Some(Millis(3)),
        ..record::tests::record(id, state)
    }
}

/// Results of a job on three lines, as `grammaton annotate` reads them.
const SEGMENTED: [(&str, &str); 4] = [
    (
        "job.toml",
        "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n[inference]\nmethod = \"hastings\"\n",
    ),
    ("summary.json", "{}"),
    ("segmentation.mbr-vote.txt", "a bc\nab<i>\na bc\n"),
    (
        "boundaries.tsv",
        "line\tposition\tprobability\tboundary\n1\t1\t0.6000\tyes\n1\t2\t0.1000\tno\n2\t1\t0.4000\tno\n2\t2\t0.1000\tno\n\
         2\t3\t0.0000\tno\n2\t4\t0.0000\tno\n3\t1\t0.6000\tyes\n3\t2\t0.1000\tno\n",
    ),
];

fn serve(access: Access) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let job_store = JobStore::open(folder.path(), None).unwrap();
    job_store.records().save(&record(1, State::Done { parameters_sha256: "abc".into() })).unwrap();
    job_store.records().save(&record(2, State::Failed { error: "<img src=x>".into() })).unwrap();
    let out = job_store.results(JobId(1));
    std::fs::create_dir_all(out.join("model")).unwrap();
    for name in ["report.html", "summary.json", "model/model.bin"] {
        std::fs::write(out.join(name), name).unwrap();
    }
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    job_store.records().save(&record(3, State::Done { parameters_sha256: "abc".into() })).unwrap();
    let out = job_store.results(JobId(3));
    std::fs::create_dir_all(&out).unwrap();
    for (name, text) in SEGMENTED {
        std::fs::write(out.join(name), text).unwrap();
    }
    let fleet = Fleet::start(FleetConfig { local_workers: 1, ..Default::default() }).unwrap();
    let service = Service::start(job_store, fleet, 1, Limits::with(Processes::threads())).unwrap();
    let bound = Bound::at("127.0.0.1:0".parse().unwrap(), &access, false).unwrap();
    let address = bound.address();
    Served { address, folder, _page: bound.serve(service, access, None).unwrap() }
}

/// Tokens `ann` (submit), `op` (operate), `eve` (read) and `node` (work); each secret is the name.
fn tokens(folder: &Path) -> Access {
    let of = [("ann", Role::Submit), ("op", Role::Operate), ("eve", Role::Read), ("node", Role::Work)];
    let text: String = of.iter().map(|(name, role)| line(name, *role, name)).collect();
    let path = folder.join("tokens");
    std::fs::write(&path, text).unwrap();
    Access::Roles(Tokens::read(&path).unwrap())
}

impl Served {
    fn guarded() -> Served {
        let folder = tempfile::tempdir().unwrap();
        serve(tokens(folder.path()))
    }

    /// Sends a request with additional header lines; returns the whole response.
    fn ask(&self, request: &str, headers: &[&str], body: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let more: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let host = if more.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let length = body.len();
        let text = format!(
            "{request} HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: {length}\r\n{more}\r\n{body}"
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // An error means that the connection was closed; the response was read before.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn status(&self, request: &str, headers: &[&str]) -> u16 {
        status(&self.ask(request, headers, ""))
    }

    fn ours(&self) -> String {
        format!("Origin: http://{}", self.address)
    }
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

#[test]
fn each_role_is_for_its_own_routes() {
    let served = Served::guarded();
    let ours = served.ours();
    // Status without token, and for work, read, submit, operate.
    for (request, expected) in [
        ("GET /", [401, 403, 200, 200, 200]),
        ("GET /jobs/1", [401, 403, 200, 200, 200]),
        ("GET /workers", [401, 403, 200, 200, 200]),
        ("GET /metrics", [401, 403, 200, 200, 200]),
        ("GET /jobs/1/files/summary.json", [401, 403, 200, 200, 200]),
        ("GET /jobs/1/results.tar.gz", [401, 403, 200, 200, 200]),
        ("GET /jobs/2/results.tar.gz", [401, 403, 404, 404, 404]),
        ("GET /nowhere", [401, 403, 404, 404, 404]),
        ("GET /jobs/1/events/", [401, 403, 404, 404, 404]),
        ("POST /jobs/1/cancel", [401, 403, 403, 409, 409]),
        ("POST /jobs/1/resume", [401, 403, 403, 409, 409]),
        ("GET /jobs/1/cancel", [401, 403, 405, 405, 405]),
        ("GET /jobs/1/resume", [401, 403, 405, 405, 405]),
        ("GET /logout", [405; 5]),
        ("DELETE /jobs/1", [401, 403, 403, 405, 405]),
        ("GET /health", [200; 5]),
        ("GET /login", [200; 5]),
        ("GET /style.css", [200; 5]),
        ("GET /live.js", [200; 5]),
        ("GET /jobs/2/delete", [401, 403, 405, 405, 405]),
        ("GET /jobs/3/annotate/", [401, 403, 200, 200, 200]),
        ("GET /jobs/3/annotate/style.css", [401, 403, 200, 200, 200]),
        ("GET /jobs/3/annotate/annotate.js", [401, 403, 200, 200, 200]),
        ("GET /jobs/3/annotate/state", [401, 403, 200, 200, 200]),
        ("GET /jobs/3/annotate/segmented.txt", [401, 403, 200, 200, 200]),
        ("GET /jobs/3/annotate/annotated.txt", [401, 403, 200, 200, 200]),
        ("POST /jobs/3/annotate/annotations", [401, 403, 403, 400, 400]),
        ("POST /jobs/3/annotate/learned", [401, 403, 403, 409, 409]),
        ("GET /jobs/3/annotate/learned", [401, 403, 405, 405, 405]),
        ("GET /jobs/1/annotate/", [401, 403, 400, 400, 400]),
        ("GET /jobs/2/annotate/", [401, 403, 400, 400, 400]),
        ("GET /jobs/2/annotate/state", [401, 403, 400, 400, 400]),
        ("POST /jobs/2/annotate/annotations", [401, 403, 403, 400, 400]),
        ("GET /jobs/9/annotate/state", [401, 403, 404, 404, 404]),
        ("POST /jobs/2/delete", [401, 403, 403, 303, 404]),
    ] {
        let shown = ["", "node", "eve", "ann", "op"].map(|name| match name {
            "" => served.status(request, &[&ours]),
            name => served.status(request, &[&ours, &format!("Authorization: Bearer {name}")]),
        });
        assert_eq!(shown, expected, "{request}");
    }
}

#[test]
fn jobs_of_other_users_cannot_be_changed_with_the_role_submit() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokens"), line("bob", Role::Submit, "bob")).unwrap();
    let served = serve(Access::Roles(Tokens::read(&folder.path().join("tokens")).unwrap()));
    for path in ["2/resume", "3/annotate/annotations", "3/annotate/learned"] {
        let request = format!("POST /jobs/{path}");
        let answer = served.ask(&request, &[&served.ours(), "Authorization: Bearer bob"], &said(0, "01", ""));
        assert!(status(&answer) == 403 && answer.contains("the job is ann's"), "{answer}");
    }
    let page = served.ask("GET /jobs/3/annotate/", &["Authorization: Bearer bob"], "");
    assert!(status(&page) == 200 && page.contains("data-refusal=\"You may look"), "{page}");
}

/// The body of an answer, whose chunks are put together.
fn body(answer: &str) -> String {
    let (head, mut rest) = answer.split_once("\r\n\r\n").unwrap();
    if !head.to_lowercase().contains("transfer-encoding: chunked") {
        return rest.to_owned();
    }
    let mut body = String::new();
    while let Some((size, chunk)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body += &chunk[..size];
        rest = chunk[size..].trim_start_matches("\r\n");
    }
    body
}

/// A change of a line as the page sends it.
fn said(line: usize, known: &str, version: &str) -> String {
    format!("{{\"line\":{line},\"known\":\"{known}\",\"version\":\"{version}\"}}")
}

/// Two pages of one job and of two users annotate its lines, which other results leave and find again; the job takes the annotations with it.
#[test]
fn lines_of_a_finished_job_are_annotated_and_learned_from() {
    let served = Served::guarded();
    let (ann, op) = ("Authorization: Bearer ann", "Authorization: Bearer op");
    let get = |name: &str, who: &str| {
        let answer = served.ask(&format!("GET /jobs/3/annotate/{name}"), &[who], "");
        assert_eq!(status(&answer), 200, "{answer}");
        body(&answer)
    };
    let state = |who| serde_json::from_str::<serde_json::Value>(&get("state", who)).unwrap();
    let post = |name: &str, who: &str, body: &str| {
        served.ask(&format!("POST /jobs/3/annotate/{name}"), &[who, &served.ours()], body)
    };
    let page = served.ask("GET /jobs/3", &[ann], "");
    assert!(page.contains("href=\"/jobs/3/annotate/\""), "{page}");
    assert!(!served.ask("GET /jobs/1", &[ann], "").contains("annotate"), "it has no boundaries");
    let page = get("", ann);
    assert!(
        page.contains("annotate.js") && page.contains("&lt;b&gt;job") && !page.contains("data-refusal"),
        "{page}"
    );

    let first = state(ann);
    assert_eq!(first["lines"].as_array().unwrap().len(), 2, "distinct lines");
    assert_eq!(
        (&first["lines"][0]["times"], &first["lines"][0]["known"]),
        (&2.into(), &serde_json::Value::Null)
    );
    let version = first["version"].as_str().unwrap();
    let kept = post("annotations", ann, &said(0, "01", version));
    assert!(status(&kept) == 200 && kept.contains("\"stale\":false"), "{kept}");
    let kept = post("annotations", op, &said(1, "1000", version));
    assert!(status(&kept) == 200 && kept.contains("\"stale\":true"), "{kept}");
    let file = served.folder.path().join("work/3/annotated.txt");
    let written = "ab c\na b<i>\n";
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
    assert_eq!(get("annotated.txt", op), written);
    assert_eq!(get("segmented.txt", ann), "a bc\nab<i>\na bc\n");
    for bad in ["", "?", "??", "012", "0x"] {
        assert_eq!(status(&post("annotations", ann, &said(0, bad, ""))), 400, "{bad}");
    }
    assert_eq!(status(&post("annotations", ann, &said(2, "01", ""))), 400, "there are two lines");
    let large = status(&post("annotations", ann, &"x".repeat(annotate::CHANGE + 1)));
    assert!([0, 413].contains(&large), "{large}");
    let foreign = served.ask(
        "POST /jobs/3/annotate/annotations",
        &[ann, "Origin: http://evil.example"],
        &said(0, "00", ""),
    );
    assert_eq!(status(&foreign), 403);

    let learned = post("learned", ann, "{}");
    assert_eq!(status(&learned), 200, "{learned}");
    assert_eq!(get("segmented.txt", ann), "ab c\na b<i>\nab c\n");
    let again = post("learned", op, "{}");
    assert_eq!(body(&again), get("state", ann), "what was learned is not learned twice");
    // A file that somebody has damaged is an error of one line, and stays.
    std::fs::write(&file, "ab c\na\u{1}b\n").unwrap();
    let refused = post("annotations", ann, &said(0, "11", ""));
    assert!(status(&refused) == 409 && refused.contains("annotated.txt of job 3:2"), "{refused}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "ab c\na\u{1}b\n");
    std::fs::write(&file, written).unwrap();
    let audit = std::fs::read_to_string(served.folder.path().join("audit.jsonl")).unwrap();
    assert!(audit.contains("\"who\":\"op\",\"what\":\"annotate\",\"job\":3"), "{audit}");

    assert_eq!(served.status("POST /jobs/3/delete", &[ann, &served.ours()]), 303);
    assert_eq!(served.status("GET /jobs/3/annotate/state", &[ann]), 404);
    assert_eq!(status(&post("annotations", ann, &said(0, "01", ""))), 404);
    assert!(!served.folder.path().join("work/3").exists());
}

/// Results beyond the limit are refused with the way out, and are not read.
#[test]
fn large_results_are_annotated_elsewhere() {
    let served = Served::guarded();
    let table =
        std::fs::File::options().write(true).open(served.folder.path().join("work/3/out/boundaries.tsv"));
    table.unwrap().set_len(9 << 20).unwrap();
    let refused = served.ask("GET /jobs/3/annotate/state", &["Authorization: Bearer ann"], "");
    assert!(status(&refused) == 400 && refused.contains("grammaton fetch 3 --out results"), "{refused}");
}

/// However many downloads of a user are not read, pages and downloads of others are answered.
#[test]
fn downloads_that_are_not_read_keep_no_page_out() {
    let served = Served::guarded();
    let large = std::fs::File::create(served.folder.path().join("work/1/out/large")).unwrap();
    large.set_len(64 << 20).unwrap();
    let download = || {
        let mut stream = TcpStream::connect(served.address).unwrap();
        let head = format!(
            "GET /jobs/1/files/large HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer eve\r\n\r\n",
            served.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let unread: Vec<TcpStream> = (0..3 * THREADS).map(|_| download()).collect();
    unread.iter().for_each(|stream| stream.set_nonblocking(true).unwrap());
    let has_begun = |stream: &&TcpStream| stream.peek(&mut [0]).is_ok_and(|n| n > 0);
    while unread.iter().filter(has_begun).count() < DOWNLOADS[1] {
        std::thread::sleep(Duration::from_millis(5));
    }
    for path in ["/", "/jobs/1", "/jobs/1/files/summary.json"] {
        assert_eq!(served.status(&format!("GET {path}"), &["Authorization: Bearer ann"]), 200, "{path}");
    }
}

#[test]
fn a_browser_logs_in_and_out() {
    let served = Served::guarded();
    let page = ["Accept: text/html"];
    let away = served.ask("GET /jobs/1", &page, "");
    assert!(status(&away) == 303 && away.contains("location: /login\r\n"), "{away}");
    let form = |token: &str| {
        let (kind, ours) = ("Content-Type: application/x-www-form-urlencoded", served.ours());
        served.ask("POST /login", &[kind, &ours], &format!("token={token}"))
    };
    let wrong = form("forged");
    assert!(
        status(&wrong) == 303 && wrong.contains("location: /login?again") && !wrong.contains("set-cookie"),
        "{wrong}"
    );
    assert_eq!(status(&form("node")), 403);
    let right = form("eve");
    assert!(status(&right) == 303 && right.contains("location: /\r\n") && !right.contains("eve"), "{right}");
    let (_, cookie) = right.split_once("set-cookie: ").unwrap();
    let (cookie, attributes) = cookie.split_once("; ").unwrap();
    assert!(attributes.starts_with("HttpOnly; SameSite=Strict; Path=/; Max-Age=43200\r\n"), "{attributes}");
    let cookie = format!("Cookie: other=1; {cookie}");
    let jobs = served.ask("GET /", &[&cookie], "");
    assert!(
        status(&jobs) == 200
            && jobs.contains("<body class=\"reader\"")
            && jobs.contains("&lt;b&gt;job&lt;/b&gt;"),
        "{jobs}"
    );
    for forged in ["grammaton=forged", "grammaton=", "grammaton", "grammaton=eve", "xgrammaton=eve"] {
        assert_eq!(served.status("GET /", &[&format!("Cookie: {forged}")]), 401, "{forged}");
    }
    let out = served.ask("POST /logout", &[&served.ours(), &cookie], "");
    assert!(out.contains("grammaton=;") && out.contains("Max-Age=0"), "{out}");
    assert_eq!(served.status("GET /", &[&cookie]), 401, "the session has ended");
    let audit = std::fs::read_to_string(served.folder.path().join("audit.jsonl")).unwrap();
    let noted = audit.lines().filter(|line| line.contains("\"login refused\"") && line.contains("127.0.0.1"));
    assert!(
        noted.count() == 2
            && audit.contains("\"who\":\"eve\",\"what\":\"login\"")
            && !audit.contains("forged"),
        "{audit}"
    );
}

#[test]
fn posts_from_other_origins_are_refused() {
    let served = Served::guarded();
    let post = |header: &str| served.status("POST /jobs/1/cancel", &["Authorization: Bearer op", header]);
    for foreign in [
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: http://127.0.0.1:1",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "X-None: of these",
    ] {
        assert_eq!(post(foreign), 403, "{foreign}");
    }
    let both = format!("{}\r\nSec-Fetch-Site: cross-site", served.ours());
    assert_eq!(post(&both), 403);
    assert_eq!((post(&served.ours()), post("Sec-Fetch-Site: same-origin")), (409, 409));
    let login = served.ask("POST /login", &["Origin: http://evil.example"], "token=op");
    assert_eq!(status(&login), 403);
}

#[test]
fn every_response_has_the_security_headers() {
    let served = Served::guarded();
    let eve = "Authorization: Bearer eve";
    for (request, headers) in [
        ("GET /", &[eve][..]),
        ("GET /", &[]),
        ("GET /", &["Accept: text/html"]),
        ("GET /jobs/1", &[eve]),
        ("GET /jobs/2", &[eve]),
        ("GET /jobs/9", &[eve]),
        ("GET /workers", &[eve]),
        ("GET /login", &[]),
        ("GET /nowhere", &[eve]),
        ("POST /jobs/1/cancel", &[eve]),
        ("GET /jobs/1/files/summary.json", &[eve]),
        ("GET /jobs/1/results.tar.gz", &[eve]),
        ("GET /metrics", &[eve]),
        ("GET /health", &[]),
        ("DELETE /jobs/1", &[eve]),
        ("POST /logout", &["Sec-Fetch-Site: same-origin"]),
    ] {
        let answer = served.ask(request, headers, "").to_lowercase();
        for line in [
            format!("content-security-policy: {}\r\n", auth::POLICY),
            "x-content-type-options: nosniff\r\n".into(),
            "referrer-policy: same-origin\r\n".into(),
            "cache-control: no-store\r\n".into(),
        ] {
            assert_eq!(
                answer.matches(&line).count(),
                1,
                "{request} {headers:?}: {line} is once in\n{answer}"
            );
            let name = line.split_once(": ").unwrap().0;
            assert_eq!(
                answer.matches(&format!("\r\n{name}: ")).count(),
                1,
                "{name} has one value in\n{answer}"
            );
        }
        assert!(
            !answer.contains("<img src=x") && !answer.contains("style=") && !answer.contains("<b>job"),
            "{answer}"
        );
    }
    for kept in ["GET /style.css", "GET /live.js"] {
        let answer = served.ask(kept, &[], "");
        assert!(
            answer.contains("cache-control: max-age=300\r\n") && !answer.contains("no-store"),
            "{answer}"
        );
    }
}

#[test]
fn results_are_attachments_and_the_report_is_shown_in_a_sandbox() {
    let served = serve(Access::Open);
    let file = served.ask("GET /jobs/1/files/model/model.bin", &[], "");
    assert!(
        file.ends_with("\r\n\r\nmodel/model.bin")
            && file.contains("content-disposition: attachment; filename=\"model.bin\""),
        "{file}"
    );
    let report = served.ask("GET /jobs/1/files/report.html", &[], "");
    assert!(
        report.contains(
            "content-security-policy: sandbox allow-scripts; default-src 'none'; script-src 'sha256-"
        ),
        "{report}"
    );
    assert_eq!(report.matches("script-src").count(), 1, "{report}");
    assert!(!report.contains("attachment") && !report.contains("script-src 'unsafe"), "{report}");
    assert_eq!(report.matches("content-security-policy: ").count(), 1, "{report}");
    for path in [
        "/jobs/1/files/../../../secret",
        "/jobs/1/files/%2e%2e/%2e%2e/%2e%2e/secret",
        "/jobs/1/files/..%2f..%2f..%2fsecret",
        "/jobs/1/files//etc/passwd",
        "/jobs/1/files/%2Fetc%2Fpasswd",
        "/jobs/1/files/summary.json%00",
        "/jobs/1/files/%ff",
        "/jobs/1/files/model",
        "/jobs/1/files/model/",
        "/jobs/1/files/",
        "/jobs/1/files/./summary.json",
        "/jobs/2/files/summary.json",
        "/jobs/9/files/summary.json",
        "/jobs/one",
        "/jobs/-1",
        "/jobs/1e3",
        "/jobs/99999999999999999999999",
        "/jobs/1/../2/../../secret",
        "/jobs/one/events",
        "/jobs/%ff",
    ] {
        assert_eq!(served.status(&format!("GET {path}"), &[]), 404, "{path}");
    }
}

#[test]
fn without_tokens_only_this_machine_is_served() {
    let served = serve(Access::Open);
    assert_eq!(served.status("GET /", &["Host: localhost:80"]), 200);
    assert_eq!(served.status("GET /", &["Host: [::1]"]), 200);
    for other in ["evil.example", "evil.example:80", "10.0.0.1", "localhost.evil.example", ""] {
        assert_eq!(served.status("GET /", &[&format!("Host: {other}")]), 421, "{other}");
    }
    let refused = Bound::at("0.0.0.0:0".parse().unwrap(), &Access::Open, false).err().unwrap().to_string();
    assert!(
        refused.starts_with("0.0.0.0:0: refusing to serve pages beyond loopback without a token"),
        "{refused}"
    );
    assert!(Bound::at("0.0.0.0:0".parse().unwrap(), &Access::Open, true).is_ok());
}

#[test]
fn requests_have_limits() {
    let served = serve(Access::Open);
    let form = "Content-Type: application/x-www-form-urlencoded";
    let large = served.ask("POST /login", &[form, &served.ours()], &format!("token={}", "x".repeat(FORM)));
    assert!([400, 413].contains(&status(&large)), "{large}");
    let head = served.ask("GET /", &[&format!("X-Large: {}", "x".repeat(100 << 10))], "");
    assert!([0, 431].contains(&status(&head)), "{head}");
    assert_eq!(served.status("GET /", &[]), 200);
}

#[test]
fn a_watcher_gets_all_parts_and_then_changes() {
    let served = serve(Access::Open);
    let mut stream = TcpStream::connect(served.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut heard = String::new();
    let mut read_until = |wanted: &str| {
        let mut piece = [0; 4096];
        while !heard.contains(wanted) {
            let n = stream.read(&mut piece).unwrap();
            assert!(n > 0, "{heard}");
            heard += &String::from_utf8_lossy(&piece[..n]);
        }
        std::mem::take(&mut heard)
    };
    let first = read_until("\"id\":\"jobs\"");
    assert!(
        first.contains("content-type: text/event-stream") && first.contains("\"id\":\"numbers\""),
        "{first}"
    );
    assert_eq!(served.status("POST /jobs/2/resume", &[&served.ours()]), 303);
    read_until("event: part\ndata: {\"id\":\"jobs\"");
}
