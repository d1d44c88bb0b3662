//! Measurements of a service under load, and of fair sharing of a fleet; they decide no test.
//!
//! `cargo build --release --workspace --bins`, then `cargo test --release --workspace --test all load:: -- --ignored --nocapture --test-threads 1`
//! prints what is in `docs/results/cluster.md`. `LOAD_JOBS`, `LOAD_WATCHERS`, `LOAD_MEBIBYTES` and `LOAD_SECONDS` are for smaller machines.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use grammaton_tests::cluster::worker_command;
use grammaton_tests::folder::{Folder, examples};
use grammaton_tests::serving::Serving;
use grammaton_tests::{Process, clock, eventually};
use serde_json::Value;

use super::floods::with_token;

/// A setting from the environment, or its default of `docs/results/cluster.md`.
fn setting(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |value| value.parse().expect("a number"))
}

/// The sample corpus, repeated `times` times.
fn corpus(times: usize) -> String {
    fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap().repeat(times)
}

/// Resident memory of a process, now and at its peak, in MiB, and its CPU seconds.
pub(super) fn usage(process: u32) -> (u64, u64, f64) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mebibytes = |key: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
    };
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (mebibytes("VmRSS"), mebibytes("VmHWM"), (ticks(11) + ticks(12)) / 100.0)
}

/// Loads a page on a new connection; returns its size in bytes and the duration.
fn get(page: &str, path: &str) -> (usize, Duration) {
    let begun = clock();
    let mut stream = TcpStream::connect(page).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {page}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..300]));
    (answer.len(), begun.elapsed())
}

/// Median and a high percentile.
pub(super) fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    format!("median {:.1} ms, 99 % within {:.1} ms", at(0.5), at(0.99))
}

fn pages(page: &str, n: usize) -> String {
    let of = |path: &str| {
        let found: Vec<(usize, Duration)> = (0..n).map(|_| get(page, path)).collect();
        format!("{path} {} kB {}", found[0].0 / 1000, spread(found.iter().map(|(_, took)| *took).collect()))
    };
    format!("{}; {}", of("/"), of("/jobs/1"))
}

#[test]
#[ignore = "takes minutes, and prints figures"]
fn by_hand_many_jobs_many_watchers_and_a_large_upload() {
    let (jobs, watchers) = (setting("LOAD_JOBS", 1000), setting("LOAD_WATCHERS", 200));
    let seconds = Duration::from_secs(setting("LOAD_SECONDS", 20) as u64);
    let folder = Folder::new(&[("corpus.txt", &corpus(1))]);
    let large = corpus(1);
    let times = (setting("LOAD_MEBIBYTES", 1024) << 20) / large.len() + 1;
    fs::write(folder.path("large.txt"), large.repeat(times)).unwrap();
    for name in ["corpus", "large"] {
        let job = format!(
            "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"{name}.txt\"\n[inference]\ntruncation = 3000\n\
             max_rounds = 100000\ntolerance = 0\n"
        );
        fs::write(folder.path(&format!("{name}.toml")), job).unwrap();
    }
    let mut service = Serving::start(&folder, &["--http", "127.0.0.1:0"]);
    let mut page = service.serving();

    let (begun, next, url) = (clock(), AtomicU64::new(0), service.url.clone());
    let took: Vec<Duration> = std::thread::scope(|scope| {
        let submit = || {
            let mut took = Vec::new();
            while next.fetch_add(1, Ordering::Relaxed) < jobs as u64 {
                let begun = clock();
                folder.grammaton(&["submit", "corpus.toml", "--coordinator", &url]);
                took.push(begun.elapsed());
            }
            took
        };
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(submit)).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    println!(
        "{jobs} jobs submitted by 8 at a time: {:.1} a second; each process {}",
        jobs as f64 / begun.elapsed().as_secs_f64(),
        spread(took)
    );
    let (resident, most, cpu) = usage(service.id());
    println!("the service: {resident} MiB ({most} at most), {cpu:.1} CPU seconds");
    let list: Vec<Duration> = (0..20)
        .map(|_| {
            let begun = clock();
            service.grammaton(&folder, &["jobs", "--json"]);
            begun.elapsed()
        })
        .collect();
    println!("grammaton jobs --json: {}", spread(list));
    println!("pages: {}", pages(&page, 50));

    let _worker = Process::spawn(&mut worker_command(&service.url, "alice"));
    let round = |service: &Serving| service.job(&folder, "1")["progress"]["round"].as_u64();
    eventually(&|| service.log(), || round(&service) >= Some(3));
    let watched = |n: usize| {
        let (events, bytes, over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let before = usage(service.id());
        let pages = std::thread::scope(|scope| {
            let watch = || {
                let mut stream = TcpStream::connect(&page).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                write!(stream, "GET /jobs/1/events HTTP/1.1\r\nHost: {page}\r\n\r\n").unwrap();
                let mut lines = BufReader::new(stream);
                let mut line = Vec::new();
                while !over.load(Ordering::Relaxed) && lines.read_until(b'\n', &mut line).is_ok_and(|n| n > 0)
                {
                    events.fetch_add(u64::from(line.starts_with(b"event:")), Ordering::Relaxed);
                    bytes.fetch_add(line.len() as u64, Ordering::Relaxed);
                    line.clear();
                }
                assert!(over.load(Ordering::Relaxed), "the stream ended");
            };
            (0..n).for_each(|_| drop(scope.spawn(watch)));
            std::thread::sleep(seconds / 2);
            let pages = pages(&page, 20);
            std::thread::sleep(seconds / 2);
            over.store(true, Ordering::Relaxed);
            pages
        });
        let after = usage(service.id());
        let (events, mebibytes) = (events.into_inner(), bytes.into_inner() >> 20);
        println!(
            "{n} watchers for {seconds:?}: {events} events, {mebibytes} MiB; the service {:.1} CPU seconds, {} MiB; {pages}",
            after.2 - before.2,
            after.0
        );
    };
    watched(0);
    watched(watchers);

    for what in ["sent and checked", "submitted again, with nothing to send"] {
        let before = usage(service.id());
        let begun = clock();
        let args = ["submit", "large.toml", "--coordinator", &service.url];
        let mut submit = Process::spawn(&mut folder.command(&args));
        while submit.ended().is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let after = usage(service.id());
        println!(
            "{} MiB {what}: {:.1} s; the service {:.1} CPU seconds, {} MiB ({} at most)",
            fs::metadata(folder.path("large.txt")).unwrap().len() >> 20,
            begun.elapsed().as_secs_f64(),
            after.2 - before.2,
            after.0,
            after.1
        );
    }

    service.kill();
    let begun = clock();
    service.begin();
    let known: Vec<Value> = serde_json::from_str(&service.grammaton(&folder, &["jobs", "--json"])).unwrap();
    println!("killed, and back with {} jobs after {:.2} s", known.len(), begun.elapsed().as_secs_f64());
    service.kill();
    let record = fs::read_to_string(service.store.join("jobs/1.json")).unwrap();
    let mut record: Value = serde_json::from_str(&record).unwrap();
    record["state"] = serde_json::json!({ "done": { "parameters_sha256": "0123456789abcdef".repeat(4) } });
    for id in jobs + 3..=10 * jobs {
        record["id"] = id.into();
        fs::write(service.store.join(format!("jobs/{id}.json")), record.to_string()).unwrap();
    }
    let begun = clock();
    service.begin();
    page = service.serving();
    let known: Vec<Value> = serde_json::from_str(&service.grammaton(&folder, &["jobs", "--json"])).unwrap();
    println!("killed, and back with {} jobs after {:.2} s", known.len(), begun.elapsed().as_secs_f64());
    println!("pages: {}; the service {} MiB", pages(&page, 20), usage(service.id()).0);
}

/// Malicious job files, each with a name and the file that it reads.
fn attacks() -> Vec<(&'static str, String, Vec<u8>)> {
    let job = |model: &str, corpus: &str, rest: &str| format!("[model]\n{model}\n[corpus]\n{corpus}\n{rest}");
    let values = (0..100).map(|value| (value + 1).to_string()).collect::<Vec<_>>().join(", ");
    let sweep =
        ["alpha", "tolerance", "seed", "max_rounds", "noise"].map(|key| format!("{key} = [{values}]\n"));
    let tags: String =
        (0..10_000).map(|at| format!("w\tt{}\t2\nv\tt{}\t0\n\n", 2 * at, 2 * at + 1)).collect();
    let words = |rule: usize| (0..1000).map(|word| format!("{:x} ", 1000 * rule + word)).collect::<String>();
    let symbols: String = (0..280).map(|rule| format!("1 1 S --> {}\n", words(rule))).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&[&b"a\n"[..], &vec![b'\n'; 64 << 20]].concat()).unwrap();
    let auto = "grammar = \"auto:unigram\"";
    vec![
        ("sweep", job(auto, "path = \"file\"", &format!("[[sweep]]\n{}", sweep.concat())), b"ab\n".to_vec()),
        ("tags", job("kind = \"dmv\"", "path = \"file\"", ""), tags.into_bytes()),
        ("symbols", job("kind = \"pcfg\"\ngrammar = \"file\"", "path = \"file\"", ""), symbols.into_bytes()),
        ("unpacked", job(auto, "path = \"file\"", ""), gzip.finish().unwrap()),
    ]
}

/// Submits an attack by the user of `token` repeatedly until `over`; returns the number of submissions and the last error.
async fn attack(url: String, token: String, job: String, file: Vec<u8>, over: &AtomicBool) -> (u64, String) {
    use proto::v1::{self, jobs_client::JobsClient, upload_message::Message};
    let hash = blake3::hash(&file).as_bytes().to_vec();
    let head = v1::InputFile { hash: hash.clone().into(), size: file.len() as u64 };
    let pieces = file.chunks(1 << 20).map(|piece| Message::Data(piece.to_vec().into()));
    let upload: Vec<_> = std::iter::once(Message::Head(head)).chain(pieces).collect();
    let upload = upload.into_iter().map(|message| v1::UploadMessage { message: Some(message) });
    let mut jobs = JobsClient::connect(url).await.unwrap();
    let (mut n, mut last_line) = (0, String::new());
    while !over.load(Ordering::Relaxed) {
        let upload = tokio_stream::iter(upload.clone().collect::<Vec<_>>());
        jobs.upload(with_token(&token, upload)).await.unwrap();
        let input = v1::JobInput { path: "file".to_owned(), hash: hash.clone().into() };
        let (job, name) = (job.clone(), "attack".to_owned());
        let request = v1::SubmitRequest { job, name, inputs: vec![input], ..Default::default() };
        last_line =
            jobs.submit(with_token(&token, request)).await.expect_err("it is refused").message().to_owned();
        n += 1;
    }
    (n, last_line)
}

#[test]
#[ignore = "takes minutes, and prints figures"]
fn by_hand_another_user_submits_while_the_service_is_attacked() {
    let seconds = Duration::from_secs(setting("LOAD_SECONDS", 20) as u64);
    let job = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n[inference]\ntruncation = 3000\n";
    let folder = Folder::new(&[("corpus.txt", &corpus(1)), ("job.toml", job)]);
    let [ann, mallory] = ["ann", "mallory"].map(|name| {
        let secret = folder.grammaton(&["token", name, "submit", "--tokens", "tokens"]);
        secret.trim_end().to_owned()
    });
    fs::write(folder.path("ann"), ann).unwrap();
    let args = ["--tokens", "tokens", "--max-user-jobs", "100000", "--max-jobs", "100000"];
    let service = Serving::start(&folder, &args);
    let submits = || {
        let (begun, mut took) = (clock(), Vec::new());
        while begun.elapsed() < seconds {
            let begun = clock();
            service.grammaton(&folder, &["submit", "job.toml", "--token-file", "ann"]);
            took.push(begun.elapsed());
            std::thread::sleep(Duration::from_millis(100));
        }
        (took.len(), spread(took))
    };
    let (n, quiet) = submits();
    println!("{n} submits, nothing else going on: {quiet}");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let together = attacks().into_iter().map(|attack| vec![attack]).chain([attacks()]);
    for attacks in together {
        let over = std::sync::Arc::new(AtomicBool::new(false));
        let names: Vec<&str> = attacks.iter().map(|(name, ..)| *name).collect();
        let attackers: Vec<_> = attacks
            .iter()
            .flat_map(|attack| [attack; 2])
            .map(|(_, job, file)| {
                let (url, job, file, over) = (service.url.clone(), job.clone(), file.clone(), over.clone());
                let token = mallory.clone();
                runtime.spawn(async move { attack(url, token, job, file, &over).await })
            })
            .collect();
        let (n, attacked) = submits();
        over.store(true, Ordering::Relaxed);
        let ends: Vec<(u64, String)> =
            attackers.into_iter().map(|attacker| runtime.block_on(attacker).unwrap()).collect();
        let refused: u64 = ends.iter().map(|(n, _)| n).sum();
        println!("{n} submits beside {names:?}, two of each at a time, {refused} refused: {attacked}");
        ends.iter().step_by(2).for_each(|(_, last_line)| println!("    {last_line}"));
    }
    println!("the service: {} MiB at most", usage(service.id()).1);
}

/// Jobs whose only task has no end within hours.
const ENDLESS: &str = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"tiny.txt\"\n[inference]\nmethod = \"hastings\"\nsweeps = 1000000\n";

#[test]
#[ignore = "takes minutes, and prints figures"]
fn by_hand_a_short_job_beside_endless_ones_of_another_user() {
    let job = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n[inference]\nmax_rounds = 3\ntolerance = 0\n";
    let folder = Folder::new(&[
        ("corpus.txt", &corpus(1)),
        ("job.toml", job),
        ("tiny.txt", "a b\n"),
        ("endless.toml", ENDLESS),
    ]);
    for (name, role) in [("ann", "submit"), ("eve", "submit"), ("node", "work")] {
        let token = folder.grammaton(&["token", name, role, "--tokens", "tokens"]);
        fs::write(folder.path(name), token).unwrap();
    }
    let service = Serving::start(&folder, &["--tokens", "tokens"]);
    let _workers = ["alice", "bob"].map(|name| {
        let mut command = worker_command(&service.url, name);
        Process::spawn(command.arg("--token-file").arg(folder.path("node")))
    });
    let short = || {
        let mut took: Vec<Duration> = (0..setting("LOAD_TIMES", 5))
            .map(|_| {
                let begun = clock();
                service.grammaton(&folder, &["submit", "job.toml", "--wait", "--token-file", "ann"]);
                begun.elapsed()
            })
            .collect();
        took.sort_unstable();
        took[took.len() / 2].as_secs_f64()
    };
    let alone = short();
    let endless: Vec<String> = (0..41)
        .map(|_| {
            let args = ["submit", "endless.toml", "--priority", "100", "--token-file", "eve"];
            service.grammaton(&folder, &args)
        })
        .collect();
    let is_running = |id: &String| {
        let status = service.grammaton(&folder, &["status", id, "--json", "--token-file", "eve"]);
        serde_json::from_str::<Value>(&status).unwrap()["state"] == "running"
    };
    eventually(&|| service.log(), || endless.iter().filter(|id| is_running(id)).count() == 16);
    let beside = short();
    println!(
        "a job of three rounds: {alone:.2} s alone, {beside:.2} s beside 41 endless ones: {:.2} times",
        beside / alone
    );
}

#[test]
#[ignore = "takes minutes, and prints figures"]
fn by_hand_shares_of_jobs_of_different_kinds() {
    let window = Duration::from_secs(setting("LOAD_SECONDS", 20) as u64);
    let words =
        "1 1 Sentence --> Words\n1 1 Words --> Word\n1 1 Words --> Word Words\n1 1 Word --> <substrings>\n";
    let folder = Folder::new(&[("words.gr", words)]);
    let lexicon = examples().join("segmentation/lexicon.gr").display().to_string();
    let corpus = folder.grammaton(&["sample", &lexicon, "-n", "20000", "--seed", "3"]);
    fs::write(folder.path("corpus.txt"), corpus).unwrap();
    // Enough tasks at the same time for any share: shards, or chains.
    let kinds = [
        ("vb", "grammar = \"auto:colloc\"", "method = \"vb\"", "10"),
        ("gibbs", "kind = \"pcfg\"\ngrammar = \"words.gr\"", "method = \"gibbs\"\nrestarts = 2", "20"),
        ("chains", "grammar = \"auto:unigram\"", "method = \"hastings\"\nrestarts = 6", "30"),
    ];
    let service = Serving::start(&folder, &[]);
    let _workers =
        ["alice", "bob", "carol"].map(|name| Process::spawn(&mut worker_command(&service.url, name)));
    let mut ids = Vec::new();
    for (name, model, inference, priority) in kinds {
        let job = format!(
            "[model]\n{model}\n[corpus]\npath = \"corpus.txt\"\nshard_symbols = 2000\n[inference]\n{inference}\n\
             truncation = 3000\nmax_rounds = 100000\ntolerance = 0\nmax_string = 6\n"
        );
        fs::write(folder.path(&format!("{name}.toml")), job).unwrap();
        ids.push(service.grammaton(&folder, &["submit", &format!("{name}.toml"), "--priority", priority]));
    }
    let job = |id: &String| service.job(&folder, id);
    eventually(&|| service.log(), || ids.iter().all(|id| job(id)["progress"]["round"].as_u64() >= Some(3)));
    let had = || -> Vec<f64> { ids.iter().map(|id| job(id)["worker_seconds"].as_f64().unwrap()).collect() };
    for _ in 0..3 {
        let before = had();
        std::thread::sleep(window);
        let had: Vec<f64> = had().iter().zip(before).map(|(after, before)| after - before).collect();
        let all: f64 = had.iter().sum();
        for ((name, .., priority), had) in kinds.iter().zip(&had) {
            let due = priority.parse::<f64>().unwrap() / 60.0;
            println!(
                "{name}, priority {priority}: {:.1} % of {all:.0} worker seconds, due {:.1} %: {:+.1} % off",
                100.0 * had / all,
                100.0 * due,
                100.0 * (had / all / due - 1.0)
            );
        }
    }
}
