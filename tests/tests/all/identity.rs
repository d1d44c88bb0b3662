//! Authentication by certificates and tokens, valid and invalid, with the real programs.
//!
//! Law: an authentication failure is one line and exit code 2; a network failure is retried.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fleet::access::Access;
use fleet::{Fleet, FleetConfig, Listen, Stage};
use grammaton::work::task::{Task, Work};
use grammaton_tests::certificates::{Authority, Files, Valid};
use grammaton_tests::folder::Folder;
use grammaton_tests::{Process, binary, echo_task, requirement};
use proto::tls::{IdentityFiles, ServerTls};
use proto::token::Token;
use service::status::RunStatus;
use service::status::service::services;

/// Certificates of a test, by defect.
struct Papers {
    dir: tempfile::TempDir,
    ours: PathBuf,
    server: Files,
    worker: Files,
    authority: Authority,
    foreign: Authority,
}

impl Papers {
    fn new() -> Papers {
        let dir = tempfile::tempdir().unwrap();
        let (authority, foreign) = (Authority::new("ours"), Authority::new("theirs"));
        Papers {
            ours: authority.write(dir.path(), "ca"),
            server: authority.identity(dir.path(), "server", &["localhost", "127.0.0.1"], Valid::Now),
            worker: authority.identity(dir.path(), "worker", &["rack-7.example"], Valid::Now),
            authority,
            foreign,
            dir,
        }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// TLS of the coordinator with the certificate `server`; requires certificates of clients if `mutual`.
    fn tls(&self, server: &Files, mutual: bool) -> ServerTls {
        let identity = IdentityFiles { certificate: &server.certificate, key: &server.key };
        ServerTls::read(identity, mutual.then_some(&self.ours)).unwrap()
    }
}

fn fleet(tls: Option<ServerTls>, token: Option<&str>) -> Fleet {
    let access = token.map_or(Access::Open, |token| Access::One(Token::new(token, "test").unwrap()));
    let services = services(RunStatus::default(), access.clone());
    let listen = Listen { access, tls, services, ..Listen::at("127.0.0.1:0".parse().unwrap()) };
    Fleet::start(FleetConfig { local_workers: 0, listen: Some(listen), ..FleetConfig::default() }).unwrap()
}

/// Command of a `grammaton-worker` for this address.
fn worker(scheme: &str, host: &str, port: u16) -> Command {
    let mut command = Command::new(binary("grammaton-worker"));
    command.args(["--threads", "1", "--coordinator", &format!("{scheme}://{host}:{port}")]);
    command.env_remove("GRAMMATON_TOKEN").env("GRAMMATON_LOG", "warn").env("NO_COLOR", "1");
    command
}

fn trusting<'a>(command: &'a mut Command, ca: &Path) -> &'a mut Command {
    command.arg("--ca").arg(ca)
}

fn showing<'a>(command: &'a mut Command, files: &Files) -> &'a mut Command {
    command.arg("--cert").arg(&files.certificate).arg("--key").arg(&files.key)
}

/// Runs a program and checks that it fails; returns its lines with errors and warnings.
fn complaint(command: &mut Command) -> String {
    let mut process = Process::spawn(command);
    assert_eq!(process.wait().code(), Some(2), "{command:?}: {}", process.log());
    process.log()
}

/// One task that the engine can compute.
fn index_task() -> Vec<Task> {
    vec![Task { work: Work::Index, ..echo_task(3, Duration::ZERO, 0) }]
}

#[test]
fn valid_certificates_and_tokens_are_accepted() {
    let papers = Papers::new();
    // Certificates on both sides; a certificate of the coordinator and a token; by name and by address.
    for (mutual, token, host) in
        [(true, None, "localhost"), (false, Some("s3cret"), "127.0.0.1"), (true, Some("s3cret"), "127.0.0.1")]
    {
        let fleet = fleet(Some(papers.tls(&papers.server, mutual)), token);
        let mut command = worker("https", host, fleet.address().unwrap().port());
        trusting(&mut command, &papers.ours);
        if mutual {
            showing(&mut command, &papers.worker);
        }
        if let Some(token) = token {
            command.env("GRAMMATON_TOKEN", token);
        }
        let mut worker = Process::spawn(&mut command);
        fleet.map(Stage::Index, index_task(), |_, _| {}).unwrap();
        fleet.shutdown();
        assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    }
}

#[test]
fn authentication_failures_are_one_line_and_end_the_worker() {
    let papers = Papers::new();
    let identity = |authority: &Authority, name: &str, hosts: &[&str], valid| {
        authority.identity(papers.path(), name, hosts, valid)
    };
    let here = ["localhost", "127.0.0.1"];
    let foreign_server = identity(&papers.foreign, "foreign-server", &here, Valid::Now);
    let expired_server = identity(&papers.authority, "expired-server", &here, Valid::Once);
    let coming_server = identity(&papers.authority, "coming-server", &here, Valid::Later);
    let other_server = identity(&papers.authority, "other-server", &["elsewhere.example"], Valid::Now);
    let foreign_worker = identity(&papers.foreign, "foreign-worker", &["w"], Valid::Now);
    let expired_worker = identity(&papers.authority, "expired-worker", &["w"], Valid::Once);

    // Defect; certificate of the coordinator, and whether it requires one; scheme; authority that the worker trusts; certificate of
    // the worker; error.
    type Case<'a> =
        (&'a str, Option<(&'a Files, bool)>, &'a str, Option<&'a Path>, Option<&'a Files>, &'a str);
    let ours = Some(papers.ours.as_path());
    let (server, good) = (&papers.server, Some(&papers.worker));
    let cases: [Case; 11] = [
        (
            "no authority to trust",
            Some((server, true)),
            "https",
            None,
            None,
            "https:// needs --ca; give the certificate of the authority",
        ),
        (
            "no certificate",
            Some((server, true)),
            "https",
            ours,
            None,
            "it demands a certificate; give --cert and --key",
        ),
        (
            "a foreign certificate",
            Some((server, true)),
            "https",
            ours,
            Some(&foreign_worker),
            "it does not accept the certificate of this side: UnknownCA",
        ),
        (
            "an expired certificate",
            Some((server, true)),
            "https",
            ours,
            Some(&expired_worker),
            "it does not accept the certificate of this side: CertificateExpired",
        ),
        (
            "a foreign coordinator",
            Some((&foreign_server, true)),
            "https",
            ours,
            good,
            "its certificate is not signed by an authority that is trusted here",
        ),
        (
            "an expired coordinator",
            Some((&expired_server, true)),
            "https",
            ours,
            good,
            "its certificate has expired",
        ),
        (
            "a coordinator to come",
            Some((&coming_server, true)),
            "https",
            ours,
            good,
            "its certificate is not valid yet",
        ),
        ("another coordinator", Some((&other_server, true)), "https", ours, good, "elsewhere.example"),
        (
            "http to TLS",
            Some((server, true)),
            "http",
            None,
            None,
            "it speaks TLS; dial it as https:// with --ca",
        ),
        ("TLS to http", None, "https", ours, good, "it does not speak TLS; dial it as http://"),
        ("certificates over http", None, "http", ours, good, "--ca, --cert and --key are for TLS"),
    ];
    for (what, shown, scheme, ca, cert, expected) in cases {
        let fleet = fleet(shown.map(|(files, mutual)| papers.tls(files, mutual)), None);
        let mut command = worker(scheme, "127.0.0.1", fleet.address().unwrap().port());
        if let Some(ca) = ca {
            trusting(&mut command, ca);
        }
        if let Some(files) = cert {
            showing(&mut command, files);
        }
        let log = complaint(&mut command);
        let own: Vec<&str> = log.lines().filter(|line| !line.contains("can read this secret")).collect();
        assert!(own.len() == 1 && own[0].contains(expected), "{what}: {log}");
        assert_eq!(fleet.members(), [], "{what}");
    }
}

#[test]
fn status_needs_the_same_credentials_as_a_worker() {
    let papers = Papers::new();
    let fleet = fleet(Some(papers.tls(&papers.server, true)), None);
    let folder = Folder::new(&[]);
    let url = |scheme: &str| format!("{scheme}://localhost:{}", fleet.address().unwrap().port());
    let ask = |command: &mut Command| {
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code(), text)
    };
    let known =
        ask(showing(trusting(&mut folder.command(&["status", &url("https")]), &papers.ours), &papers.worker));
    assert_eq!(known.0, Some(0), "{}", known.1);
    let anonymous = ask(trusting(&mut folder.command(&["status", &url("https")]), &papers.ours));
    assert!(anonymous.0 == Some(2) && anonymous.1.contains("it demands a certificate"), "{}", anonymous.1);
    let clear = ask(&mut folder.command(&["status", &url("http")]));
    assert!(clear.0 == Some(2) && clear.1.contains("it speaks TLS"), "{}", clear.1);
}

#[test]
fn a_certificate_does_not_replace_the_token() {
    let papers = Papers::new();
    let fleet = fleet(Some(papers.tls(&papers.server, true)), Some("s3cret"));
    for (guess, why) in [(None, "a token is needed"), (Some("guess"), "the token is not the coordinator's")] {
        let mut command = worker("https", "localhost", fleet.address().unwrap().port());
        showing(trusting(&mut command, &papers.ours), &papers.worker);
        command.envs(guess.map(|guess| ("GRAMMATON_TOKEN", guess)));
        let log = complaint(&mut command);
        assert!(log.contains(why), "{log}");
    }
    assert_eq!(fleet.members(), []);
}

#[test]
fn invalid_identity_files_are_named_with_a_remedy() {
    let papers = Papers::new();
    let text = papers.path().join("text.pem");
    fs::write(&text, "not PEM at all\n").unwrap();
    let nowhere = papers.path().join("nowhere.pem");
    let files = |certificate: &Path, key: &Path| Files { certificate: certificate.into(), key: key.into() };
    let (cert, key) = (&papers.worker.certificate, &papers.worker.key);
    let cases = [
        (nowhere.clone(), files(cert, key), "nowhere.pem: cannot read"),
        (text.clone(), files(cert, key), "text.pem: no certificate in it, expected PEM"),
        (papers.ours.clone(), files(&nowhere, key), "nowhere.pem: cannot read"),
        (papers.ours.clone(), files(cert, &text), "text.pem: no private key in it"),
        (papers.ours.clone(), files(cert, &papers.server.key), "server.key: not the key of"),
        (papers.ours.clone(), files(key, key), "worker.key: no certificate in it"),
    ];
    let folder = Folder::new(&[
        ("job.toml", "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n"),
        ("corpus.txt", "a b\n"),
    ]);
    for (ca, identity, expected) in cases {
        let log = complaint(showing(trusting(&mut worker("https", "localhost", 1), &ca), &identity));
        assert!(log.contains(expected), "{expected}: {log}");
        // The coordinator reads them in the same way.
        let mut command = folder.command(&["train", "job.toml", "--listen", "127.0.0.1:0"]);
        let mut process = Process::spawn(showing(trusting(&mut command, &ca), &identity));
        assert_eq!(process.wait().code(), Some(2), "{}", process.log());
        assert!(process.log().contains(expected), "{expected}: {}", process.log());
    }
}

#[test]
fn a_coordinator_beyond_loopback_needs_authentication() {
    let papers = Papers::new();
    let folder = Folder::new(&[
        ("job.toml", "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n"),
        ("corpus.txt", "a b\n"),
    ]);
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (cert, key) = (path(&papers.server.certificate), path(&papers.server.key));
    let refused = |args: &[&str]| {
        let printed =
            folder.run(&[&["train", "job.toml", "--quiet", "--listen", "0.0.0.0:0"], args].concat());
        assert_eq!(printed.code, 2, "{args:?}: {}", printed.log);
        printed.log
    };
    let log = refused(&[]);
    assert!(log.contains("refusing to listen beyond loopback without a token"), "{log}");
    // With a certificate but without `--ca` or token, any worker could join.
    let log = refused(&["--cert", &cert, "--key", &key]);
    assert!(log.contains("demand certificates (--cert, --key, --ca)"), "{log}");
    for (given, wanted) in [
        (["--cert", &cert], "--key <FILE>"),
        (["--key", &key], "--cert <FILE>"),
        (["--ca", &path(&papers.ours)], "--cert <FILE>"),
    ] {
        let log = refused(&given);
        assert!(log.contains(wanted), "{given:?}: {log}");
    }

    let listen = |tls| Listen { tls, ..Listen::at("0.0.0.0:0".parse().unwrap()) };
    let start = |tls| {
        let config = FleetConfig { local_workers: 0, listen: Some(listen(tls)), ..FleetConfig::default() };
        Fleet::start(config).map(|_| ())
    };
    assert!(start(Some(papers.tls(&papers.server, false))).is_err());
    assert!(start(Some(papers.tls(&papers.server, true))).is_ok());
}

/// Needs openssl, which the script calls.
#[test]
fn the_trial_certificates_let_a_worker_join() {
    if Command::new("openssl").arg("version").output().is_err() {
        return requirement::missing("openssl", "openssl is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    let certs = dir.path().join("certs");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/certs.sh");
    let made = Command::new(&script).arg(&certs).args(["127.0.0.1", "::1", "box.example"]).output().unwrap();
    let messages = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(made.status.success() && messages.contains("valid for 30 days"), "{messages}{made:?}");
    for (name, mode) in
        [("ca.key", 0o600), ("coordinator.key", 0o600), ("worker.key", 0o600), ("ca.pem", 0o644)]
    {
        let found = fs::metadata(certs.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{name}: {found:o}");
    }
    let before = fs::read(certs.join("ca.key")).unwrap();
    let again = Command::new(&script).arg(&certs).output().unwrap();
    let messages = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.code() == Some(2) && messages.contains("ca.pem exists already"), "{messages}");
    assert_eq!(fs::read(certs.join("ca.key")).unwrap(), before);

    let files = |name: &str| Files {
        certificate: certs.join(format!("{name}.pem")),
        key: certs.join(format!("{name}.key")),
    };
    let (server, ca) = (files("coordinator"), certs.join("ca.pem"));
    let identity = IdentityFiles { certificate: &server.certificate, key: &server.key };
    let fleet = fleet(Some(ServerTls::read(identity, Some(&ca)).unwrap()), None);
    let mut command = worker("https", "127.0.0.1", fleet.address().unwrap().port());
    let mut worker = Process::spawn(showing(trusting(&mut command, &ca), &files("worker")));
    fleet.map(Stage::Index, index_task(), |_, _| {}).unwrap();
    fleet.shutdown();
    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    assert_eq!(worker.log(), "", "nothing to warn of");
}

#[test]
fn network_failures_are_not_authentication_failures() {
    let papers = Papers::new();
    // Accepts connections, reads a little, and closes them, like a coordinator that restarts.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut connection in listener.incoming().map_while(Result::ok) {
            // The connection is closed next in any case.
            let _ = connection.read(&mut [0; 16]);
            let _ = connection.flush();
        }
    });
    for scheme in ["http", "https"] {
        let mut command = worker(scheme, "127.0.0.1", port);
        if scheme == "https" {
            showing(trusting(&mut command, &papers.ours), &papers.worker);
        }
        // A repeated failure is a warning at intervals, and otherwise a detail.
        command.env("GRAMMATON_LOG", "debug");
        let log = complaint(command.args(["--give-up-after", "1"]));
        assert!(log.contains("could not join the coordinator at"), "{log}");
        assert!(log.matches("not connected").count() >= 2, "it tried again: {log}");
    }
}

#[test]
fn no_secret_is_logged_or_on_a_command_line() {
    const SECRET: &str = "hush-3f1c9a7be2d04e58";
    let papers = Papers::new();
    let corpus = "a b a b\nb a b b\na a b\n".repeat(20);
    let job =
        "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n[inference]\nmax_rounds = 3\n";
    let folder = Folder::new(&[("job.toml", job), ("corpus.txt", &corpus), ("token", SECRET)]);
    fs::set_permissions(folder.path("token"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(folder.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    let private = fs::read_to_string(&papers.server.key).unwrap();
    let private = private.lines().nth(1).expect("a key has a line of base 64").to_owned();
    for scheme in ["http", "https"] {
        let args = [
            "train",
            "job.toml",
            "--json",
            "--overwrite",
            "--listen",
            "127.0.0.1:0",
            "--token-file",
            "token",
        ];
        let mut command = folder.command(&args);
        command.env("GRAMMATON_LOG", "trace");
        if scheme == "https" {
            showing(trusting(&mut command, &papers.ours), &papers.server);
        }
        let (mut coordinator, lines) = Process::spawn_read(&mut command);
        let listening = lines.next().expect("it says where it listens");
        let address = listening.split('"').find(|word| word.starts_with("127.0.0.1:")).expect("an address");
        let port = address.rsplit(':').next().unwrap().parse().unwrap();
        let mut command = worker(scheme, "127.0.0.1", port);
        command.env("GRAMMATON_LOG", "trace").arg("--token-file").arg(folder.path("token"));
        if scheme == "https" {
            showing(trusting(&mut command, &papers.ours), &papers.worker);
        }
        let mut worker = Process::spawn(&mut command);
        // Both run: their command lines and environments are visible on the machine.
        for process in [&coordinator, &worker] {
            let seen = fs::read(format!("/proc/{}/cmdline", process.id())).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&seen).contains(SECRET));
        }
        while lines.next().is_some() {}
        assert_eq!(coordinator.wait().code(), Some(0), "{}", coordinator.log());
        assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
        for (who, log) in [("coordinator", coordinator.log()), ("worker", worker.log())] {
            // The log must not be empty, or the search below would prove nothing.
            assert!(log.contains("TRACE") && log.contains("h2::"), "{who} logs everything");
            assert!(log.contains("every user of this machine can read this secret"), "{who} warns");
            // A member's certificate is named where it joins.
            let named = log.contains("certificate=\"rack-7.example\"");
            assert_eq!(named, who == "coordinator" && scheme == "https", "{who} over {scheme}");
            assert!(!log.contains(SECRET) && !log.contains(&private), "{who}: a secret is in the log");
        }
    }
}
