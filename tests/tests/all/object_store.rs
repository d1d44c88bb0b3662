//! Checkpoints, corpora and services in an object store: an S3 server, `moto_server`, if it is on the path; otherwise skipped. Install
//! it with `pip install "moto[s3,server]"`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::s3::{Fault, S3};
use grammaton_tests::serving::Serving;
use grammaton_tests::{Process, clock, eventually, requirement};

const SECRET: &str = "not-a-secret-but-must-not-be-logged";

/// Starts a server with the bucket `models`; `None` if the program is missing.
fn server() -> Option<(Process, SocketAddr)> {
    if !Command::new("moto_server").arg("--help").output().is_ok_and(|output| output.status.success()) {
        requirement::missing(
            "s3",
            "moto_server is not on the path; install it with pip install \"moto[s3,server]\"",
        );
        return None;
    }
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
    let port = address.port().to_string();
    let process = Process::spawn(Command::new("moto_server").args(["-H", "127.0.0.1", "-p", &port]));
    eventually(&|| process.log(), || {
        request(address, "PUT", "/models").is_some_and(|answer| answer.contains(" 200 "))
    });
    Some((process, address))
}

/// Sends a request; returns the response, if there is one.
fn request(address: SocketAddr, verb: &str, path: &str) -> Option<String> {
    put(address, verb, path, b"")
}

fn put(address: SocketAddr, verb: &str, path: &str, body: &[u8]) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let length = body.len();
    let head = format!(
        "{verb} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn folder() -> Folder {
    let corpus = std::fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let corpus: String = corpus.split_inclusive('\n').take(600).collect();
    let job = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n\
        [inference]\ntruncation = 300\nmax_rounds = 15\ntolerance = 0\n\
        [output]\ncheckpoints = \"s3://models/brent/one\"\ncheckpoint_seconds = 0\n";
    Folder::new(&[("job.toml", job), ("corpus.txt", &corpus)])
}

fn train(folder: &Folder, at: SocketAddr, out: &str, more: &[&str]) -> Process {
    let args = ["train", "job.toml", "--quiet", "--workers", "1", "--out", out];
    let mut command = folder.command(&[&args, more].concat());
    Process::spawn(command.envs(environment(at)))
}

fn environment(at: SocketAddr) -> [(&'static str, String); 6] {
    [
        ("AWS_ENDPOINT", format!("http://{at}")),
        ("AWS_ALLOW_HTTP", "true".into()),
        ("AWS_ACCESS_KEY_ID", "tester".into()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.into()),
        ("AWS_REGION", "us-east-1".into()),
        ("GRAMMATON_LOG", "debug".into()),
    ]
}

#[test]
fn a_corpus_and_a_grammar_in_the_object_store_give_the_same_bits_as_files() {
    let folder = folder();
    let Some((_server, at)) = server() else { return };
    let corpus = std::fs::read(folder.path("corpus.txt")).unwrap();
    let mut gz = GzEncoder::new(Vec::new(), Compression::default());
    gz.write_all(&corpus).unwrap();
    let grammar = std::fs::read(examples().join("grammars/unigram.gr")).unwrap();
    std::fs::write(folder.path("unigram.gr"), &grammar).unwrap();
    for (name, body) in
        [("corpus.txt", &corpus), ("corpus.txt.gz", &gz.finish().unwrap()), ("unigram.gr", &grammar)]
    {
        let answer = put(at, "PUT", &format!("/models/texts/{name}"), body).unwrap();
        assert!(answer.contains(" 200 "), "{answer}");
    }
    let here = ["--set", "output.checkpoints=", "--set", "inference.max_rounds=3"];
    let of_files = folder.train("of-files", &[&here[..], &["--set", "model.grammar=unigram.gr"]].concat());
    for name in ["corpus.txt", "corpus.txt.gz"] {
        let corpus = format!("corpus.path=s3://models/texts/{name}");
        let grammar = "model.grammar=s3://models/texts/unigram.gr";
        let set = ["--set", &corpus, "--set", grammar];
        let out = format!("of-{name}");
        let mut process = train(&folder, at, &out, &[&here[..], &set].concat());
        assert_eq!(process.wait().code(), Some(0), "{}", process.log());
        Trained::read(&folder.path(&out)).check_equals(&of_files);
    }
    let missing = ["--set", "corpus.path=s3://models/texts/corpus"];
    let mut process = train(&folder, at, "out", &[&here[..], &missing].concat());
    assert_eq!(process.wait().code(), Some(2), "{}", process.log());
    let (log, place) = (process.log(), "error: s3://models/texts/corpus: cannot be read: ");
    assert!(log.lines().last().is_some_and(|error| error.starts_with(place)), "{log}");
}

fn objects(at: SocketAddr) -> Vec<String> {
    let listing = request(at, "GET", "/models?list-type=2").unwrap();
    let keys = listing.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
    keys.map(str::to_owned).collect()
}

#[test]
fn a_killed_run_resumes_on_another_machine_from_the_object_store() {
    let folder = folder();
    let Some((_server, at)) = server() else { return };
    let one = folder.train("one", &["--set", "output.keep_checkpoints=0"]);

    let mut killed = train(&folder, at, "killed", &[]);
    let newest = || objects(at).pop().unwrap_or_default();
    eventually(&|| killed.log(), || newest().as_str() >= "brent/one/000004.ckpt");
    killed.kill();
    killed.wait();

    let mut refused = train(&folder, at, "elsewhere", &[]);
    assert_eq!(refused.wait().code(), Some(2));
    assert!(refused.log().contains("s3://models/brent/one/0000"), "{}", refused.log());

    let mut resumed = train(&folder, at, "elsewhere", &["--resume"]);
    assert_eq!(resumed.wait().code(), Some(0), "{}", resumed.log());
    let trained = Trained::read(&folder.path("elsewhere"));
    trained.check_equals(&one);
    assert_eq!(trained.summary["resumed"], 1);
    assert!((1..=3).contains(&objects(at).len()), "{:?}", objects(at));
    assert!(newest().as_str() >= "brent/one/000015.ckpt", "{}", newest());
    for process in [&killed, &refused, &resumed] {
        assert!(!process.log().contains(SECRET));
    }
}

#[test]
#[ignore = "slow"]
fn a_service_resumes_on_another_machine_from_the_object_store() {
    let folder = folder();
    let Some((_server, at)) = server() else { return };
    let (short, long) = ("inference.max_rounds=2", "inference.max_rounds=200");
    let trained = [("short", short), ("long", long)]
        .map(|(name, rounds)| folder.train(name, &["--set", "output.checkpoints=", "--set", rounds]));
    let serve = |cache| {
        let more = ["--cache", cache, "--workers", "1"];
        Serving::start_at(&folder, "s3://models/service", &more, &environment(at))
    };

    let mut service = serve("first");
    service.grammaton(&folder, &["submit", "job.toml", "--wait", "--set", short]);
    service.grammaton(&folder, &["submit", "job.toml", "--set", long]);
    let round = |service: &Serving| service.job(&folder, "2")["progress"]["round"].as_u64();
    eventually(&|| service.log(), || round(&service) >= Some(4));
    service.kill();
    // Everything but the name is lost, so that the next service need not wait for the leader lease.
    std::fs::create_dir(folder.path("second")).unwrap();
    std::fs::rename(folder.path("first/name"), folder.path("second/name")).unwrap();
    std::fs::remove_dir_all(folder.path("first")).unwrap();

    let mut service = serve("second");
    eventually(&|| service.log(), || service.job(&folder, "2")["state"] == "done");
    let log = service.grammaton(&folder, &["logs", "2"]);
    assert!(log.contains("resumed after round"), "{log}");
    service.grammaton(&folder, &["submit", "job.toml", "--wait", "--set", short]);
    let left = service.stop();
    assert_eq!(left.0, Some(0), "{}", left.1);

    let service = serve("third");
    for (id, trained) in ["1", "2"].into_iter().zip(&trained) {
        assert_eq!(service.job(&folder, id)["parameters_sha256"], trained.digest());
        let out = format!("fetched-{id}");
        service.grammaton(&folder, &["fetch", id, "--out", &out]);
        Trained::read(&folder.path(&out)).check_equals(trained);
        let log = service.grammaton(&folder, &["logs", id]);
        assert!(log.contains("submitted by anyone") && log.contains("done: parameters"), "{log}");
    }
    let objects = objects(at);
    for name in ["audit/", "files/", "jobs/1.json", "work/2/out/model/model.bin", "work/2/checkpoints/"] {
        let name = format!("service/{name}");
        assert!(objects.iter().any(|object| object.starts_with(&name)), "{name}: {objects:?}");
    }
    let mut second = folder.command(&["serve", "--store", "s3://models/service", "--listen", "127.0.0.1:0"]);
    let mut refused = Process::spawn(second.args(["--cache", "third"]).envs(environment(at)));
    assert_eq!(refused.wait().code(), Some(2));
    assert!(refused.log().contains("third: another service works there"), "{}", refused.log());
    assert!(!service.log().contains(SECRET));
}

/// Whatever happens to a result file on its way from the store to a new machine: `fetch` gives the bytes of `train`, or names the file and
/// gives them later.
#[test]
#[ignore = "slow"]
fn results_are_fetched_whole_or_not_at_all_whatever_a_store_sends() {
    let folder = folder();
    let here = ["--set", "output.checkpoints=", "--set", "inference.max_rounds=2"];
    let trained = folder.train("one", &here);
    let store = S3::start();
    let serve = |cache: &str| {
        let more = ["--cache", cache, "--workers", "1"];
        Serving::start_at(&folder, "s3://models/service", &more, &store.environment())
    };
    let mut service = serve("first");
    service.grammaton(&folder, &["submit", "job.toml", "--wait", "--set", here[3]]);
    assert_eq!(service.stop().0, Some(0));
    let is_whole = |out: &str| Trained::read(&folder.path(out)).check_equals(&trained);

    let faults =
        [None, Some((Fault::Cut, 1)), Some((Fault::Flip, 1)), Some((Fault::Flip, 2)), Some((Fault::Late, 1))];
    for (at, fault) in faults.into_iter().enumerate() {
        let (mut service, out) = (serve(&format!("cache-{at}")), format!("out-{at}"));
        fault.into_iter().for_each(|(fault, times)| store.fail("work/1/out/model", fault, times));
        let (begun, before) = (clock(), store.requests());
        service.grammaton(&folder, &["fetch", "1", "--out", &out]);
        let (took, requests) = (begun.elapsed(), store.requests() - before);
        let files = service.grammaton(&folder, &["fetch", "1", "--out", "again", "--overwrite", "--json"]);
        let n = serde_json::from_str::<Vec<String>>(&files).unwrap().len();
        println!("first fetch of {n} files with {fault:?}: {took:?}, {requests} requests");
        assert!(requests < n + 20, "{requests} requests for {n} files");
        assert!(took < std::time::Duration::from_secs(60), "{took:?}");
        assert_eq!(store.left(), 0, "{fault:?}");
        is_whole(&out);
        assert_eq!(service.stop().0, Some(0));
    }

    let more = ["--cache", "cache", "--workers", "1", "--http", "127.0.0.1:0"];
    let service = Serving::start_at(&folder, "s3://models/service", &more, &store.environment());
    let page = service.serving();
    let get = |path: &str| {
        let mut tcp = TcpStream::connect(&page).unwrap();
        write!(tcp, "GET /jobs/1/{path} HTTP/1.1\r\nHost: {page}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        tcp.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    let is_named = |answer: &str| {
        answer.starts_with("HTTP/1.1 500")
            && answer.contains("model/model.bin: damaged")
            && !answer.contains("attachment")
    };
    store.fail("work/1/out/model/model.bin", Fault::Flip, usize::MAX);
    let refused = service.run(&folder, &["fetch", "1", "--out", "late"]);
    assert_ne!(refused.code, 0);
    assert!(refused.log.contains("model/model.bin: damaged"), "{}", refused.log);
    assert!(!folder.path("late/summary.json").exists());
    let answer = get("files/model/model.bin");
    assert!(is_named(&answer), "{answer}");
    store.fail("", Fault::Flip, 0);
    service.grammaton(&folder, &["fetch", "1", "--out", "late"]);
    is_whole("late");
    let answer = get("files/model/model.bin");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("attachment"), "{answer}");

    // What is damaged on the service's own disk is noticed by who fetches it.
    let file = folder.path("cache/work/1/out/model/model.bin");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[10] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let refused = service.run(&folder, &["fetch", "1", "--out", "damaged"]);
    assert_ne!(refused.code, 0);
    assert!(refused.log.contains("model/model.bin: damaged"), "{}", refused.log);
    assert!(!folder.path("damaged/summary.json").exists());
    for path in ["files/model/model.bin", "results.tar.gz"] {
        let answer = get(path);
        assert!(is_named(&answer), "{path}: {answer}");
    }
    let answer = get("files/summary.json");
    assert!(answer.starts_with("HTTP/1.1 200"), "other files are sent: {answer}");
}

#[test]
fn an_unreachable_store_is_an_error_of_one_line() {
    let folder = folder();
    // The port is free again, so connections are refused.
    let at = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
    let mut process = train(&folder, at, "out", &["--set", "output.keep_checkpoints=1"]);
    assert_eq!(process.wait().code(), Some(2), "{}", process.log());
    let log = process.log();
    let error = log.lines().last().unwrap();
    assert!(
        error.starts_with("error: ") && error.contains("s3://models/brent/one: cannot be listed"),
        "{log}"
    );
    assert!(!log.contains(SECRET));
}
