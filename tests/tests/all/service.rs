//! A service and its commands, as processes: concurrent jobs, kills and restarts, and refusals.

use std::fs;
use std::time::Duration;

use grammaton_tests::cluster::worker_command;
use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::serving::Serving;
use grammaton_tests::{Process, clock, eventually};
use proto::v1;
use proto::v1::upload_message::Message;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

const WORDS: &str =
    "1 1 Sentence --> Words\n1 1 Words --> Word\n1 1 Words --> Word Words\n1 1 Word --> <substrings>\n";

/// Jobs of several kinds: name of the file, `[model]`, and further keys of `[inference]`.
const KINDS: [(&str, &str, &str); 5] = [
    ("vb", "grammar = \"auto:unigram\"", "method = \"vb\""),
    ("colloc", "grammar = \"auto:colloc\"", "method = \"vb\"\nrestarts = 2"),
    ("chain", "grammar = \"auto:unigram\"", "method = \"hastings\"\nkeep_every = 2"),
    ("em", "kind = \"pcfg\"\ngrammar = \"words.gr\"", "method = \"em\"\nstart = \"jitter\""),
    ("gibbs", "kind = \"pcfg\"\ngrammar = \"words.gr\"", "method = \"gibbs\"\nkeep_every = 2"),
];

fn folder() -> Folder {
    let corpus = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
    let corpus: String = corpus.split_inclusive('\n').take(300).collect();
    let folder = Folder::new(&[("corpus.txt", &corpus), ("words.gr", WORDS)]);
    for (name, model, inference) in KINDS {
        let (corpus, more) = match name {
            "chain" => ("", ""),
            "em" => ("shard_symbols = 500\n", "tolerance = 0\nmax_string = 6\n"),
            "gibbs" => ("shard_symbols = 500\n", "max_string = 6\n"),
            _ => ("shard_symbols = 500\n", "truncation = 300\ntolerance = 0\nmax_string = 6\n"),
        };
        let job = format!(
            "[model]\n{model}\n[corpus]\npath = \"corpus.txt\"\n{corpus}[inference]\n{inference}\nmax_rounds = 8\n{more}\
             [output]\ndir = \"out-{name}\"\ncheckpoint_seconds = 0\nscore_every = 3\n"
        );
        fs::write(folder.path(&format!("{name}.toml")), job).unwrap();
    }
    folder
}

fn worker(service: &Serving, name: &str) -> Process {
    Process::spawn(&mut worker_command(&service.url, name))
}

/// Waits until a job is in a state, with a timeout for many jobs.
fn await_state(service: &Serving, folder: &Folder, id: &str, state: &str) -> Value {
    let begun = clock();
    loop {
        let job = service.job(folder, id);
        if job["state"] == state {
            return job;
        }
        let log = service.grammaton(folder, &["logs", id]);
        assert!(begun.elapsed() < Duration::from_secs(300), "{job}\n{log}\n{}", service.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[ignore = "slow"]
fn jobs_of_several_clients_give_the_bits_of_train_after_kills() {
    let folder = folder();
    let seeds = ["1", "2", "3", "4"];
    let mut service = Serving::start(&folder, &["--running", "8"]);
    let mut workers = ["alice", "bob", "carol"].map(|name| worker(&service, name));
    let clients: Vec<Process> = KINDS
        .iter()
        .flat_map(|(kind, ..)| seeds.map(|seed| (kind, seed)))
        .map(|(kind, seed)| {
            let (file, seed, name) =
                (format!("{kind}.toml"), format!("inference.seed={seed}"), format!("{kind}-{seed}"));
            let args =
                ["submit", &file, "--set", &seed, "--name", &name, "--wait", "--coordinator", &service.url];
            Process::spawn(&mut folder.command(&args))
        })
        .collect();
    let jobs = || -> Vec<Value> {
        serde_json::from_str(&service.grammaton(&folder, &["jobs", "--json"])).expect("jobs are JSON")
    };
    let logs = || clients.iter().map(Process::log).collect::<String>() + &service.log();
    eventually(&logs, || jobs().len() == 20);
    workers[0].kill();
    workers[0] = worker(&service, "alice");
    service.kill();
    std::thread::sleep(Duration::from_millis(300));
    service.begin();
    workers[1].kill();
    workers[1] = worker(&service, "bob");
    std::thread::sleep(Duration::from_secs(2));
    service.kill();
    service.begin();
    for client in clients {
        let (mut client, begun) = (client, clock());
        while client.ended().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(300), "{}\n{}", client.log(), service.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(client.wait().code(), Some(0), "{}", client.log());
    }
    let list = serde_json::from_str::<Vec<Value>>(&service.grammaton(&folder, &["jobs", "--json"])).unwrap();
    assert_eq!(list.len(), 20, "each was submitted once");
    for (kind, ..) in KINDS {
        for seed in seeds {
            let (file, set, name) =
                (format!("{kind}.toml"), format!("inference.seed={seed}"), format!("{kind}-{seed}"));
            folder.grammaton(&["train", &file, "--quiet", "--out", &name, "--set", &set]);
            let trained = Trained::read(&folder.path(&name));
            let job = list.iter().find(|job| job["name"] == name).expect("all were submitted");
            assert_eq!(job["parameters_sha256"], trained.digest(), "{name}");
            let (id, out) = (job["id"].to_string(), format!("fetched-{name}"));
            service.grammaton(&folder, &["fetch", &id, "--out", &out]);
            Trained::read(&folder.path(&out)).check_equals(&trained);
            assert!(
                folder.path(&out).join("report.html").exists()
                    && !folder.path(&out).join("checkpoints").exists()
            );
        }
    }
    let (code, log) = service.stop();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn a_job_is_submitted_once_watched_cancelled_and_resumed() {
    let folder = folder();
    let service = Serving::start(&folder, &[]);
    let submit = ["submit", "colloc.toml", "--set", "inference.max_rounds=2000", "--idempotency-key", "mine"];
    let id = service.grammaton(&folder, &submit);
    assert_eq!(service.grammaton(&folder, &submit), id, "a repeated submission gives the same job");
    let job = service.job(&folder, &id);
    assert_eq!(
        (&job["state"], &job["name"], &job["owner"]),
        (&"running".into(), &"colloc".into(), &"anyone".into())
    );
    let refused = service.run(&folder, &["fetch", &id, "--out", "early"]);
    assert!(
        refused.code == 2 && refused.log.contains("there are results once it is done"),
        "{}",
        refused.log
    );
    let _worker = worker(&service, "alice");
    let rounds = || service.job(&folder, &id)["progress"]["round"].as_u64();
    eventually(&|| service.log(), || rounds() >= Some(3));
    let workers = service.grammaton(&folder, &["workers"]);
    assert!(workers.contains("alice"), "{workers}");
    service.grammaton(&folder, &["cancel", &id]);
    await_state(&service, &folder, &id, "cancelled");
    let log = service.grammaton(&folder, &["logs", &id]);
    for line in ["submitted by anyone", "begun", "round 1, run 1: bound", "cancel by anyone", "cancelled"] {
        assert!(log.contains(line), "{line:?} is not in: {log}");
    }
    assert_eq!(service.grammaton(&folder, &["resume", &id]), "running");
    eventually(&|| service.log(), || {
        service.grammaton(&folder, &["logs", &id]).contains("resumed after round")
    });
    service.grammaton(&folder, &["cancel", &id]);
    await_state(&service, &folder, &id, "cancelled");
    let waiting = service.grammaton(&folder, &["submit", "em.toml"]);
    let early = service.run(&folder, &["delete", &waiting]);
    assert!(early.code == 2 && early.log.contains("cancel it first, and delete it then"), "{}", early.log);
    let newest = service.grammaton(&folder, &["jobs", "--limit", "1", "--json"]);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&newest).unwrap()[0]["id"].to_string(), waiting);
    assert_eq!(service.grammaton(&folder, &["delete", &id]), "deleted");
    let gone = service.run(&folder, &["status", &id]);
    assert!(gone.code == 2 && gone.log.contains("there is no such job"), "{}", gone.log);
    let list: Vec<Value> = serde_json::from_str(&service.grammaton(&folder, &["jobs", "--json"])).unwrap();
    assert_eq!(list.len(), 1);
    let again = service.run(&folder, &["cancel", "99"]);
    assert!(again.code == 2 && again.log.contains("99: there is no such job"), "{}", again.log);
}

#[test]
fn invalid_jobs_are_refused_as_by_train_and_affect_no_other_job() {
    let folder = folder();
    fs::write(folder.path("bad.txt"), "a b\n\u{1}c\n").unwrap();
    fs::write(folder.path("other.gr"), "1 1 Sentence --> a\n").unwrap();
    let service = Serving::start(&folder, &[]);
    let _worker = worker(&service, "alice");
    let good = service.grammaton(&folder, &["submit", "em.toml"]);
    for set in
        ["inference.max_rouns=3", "corpus.path=gone.txt", "model.grammar=corpus.txt", "inference.restarts=0"]
    {
        let train = folder.run(&["train", "em.toml", "--quiet", "--out", "bad", "--set", set]);
        let submit = service.run(&folder, &["submit", "em.toml", "--set", set]);
        assert_eq!((train.code, submit.code), (2, 2), "{set}: {}", submit.log);
        let place = train.log.trim_end().split(": ").nth(1).unwrap().to_owned();
        assert!(submit.log.contains(&place), "{set}: {}is not like {}", submit.log, train.log);
    }
    // A missing derivation is found only while sentences are parsed.
    let set = "model.grammar=other.gr";
    let train = folder.run(&["train", "em.toml", "--quiet", "--out", "bad", "--set", set]);
    let submit = service.run(&folder, &["submit", "em.toml", "--set", set, "--wait"]);
    assert_eq!((train.code, submit.code), (2, 2));
    let refusal = |log: &str| log.lines().last().unwrap().trim_start_matches("error: ").to_owned();
    assert_eq!(refusal(&train.log).replace(&folder.path("").display().to_string(), ""), refusal(&submit.log));
    await_state(&service, &folder, &good, "done");
}

/// Removing the line of a token ends what its client has open: a log that is followed, an upload, and a worker. Those of other tokens go on.
#[test]
fn open_streams_end_with_their_token() {
    let folder = folder();
    let token = |name: &str, role: &str| {
        let secret = folder.grammaton(&["token", name, role, "--tokens", "tokens"]);
        fs::write(folder.path(&format!("{name}.token")), secret).unwrap();
        format!("{name}.token")
    };
    let ann = token("ann", "submit");
    let kept = fs::read_to_string(folder.path("tokens")).unwrap();
    let [eve, joe, node] = [token("eve", "read"), token("joe", "submit"), token("node", "work")];
    let service = Serving::start(&folder, &["--tokens", "tokens"]);
    let submitted = service.run(
        &folder,
        &["submit", "chain.toml", "--set", "inference.max_rounds=1000000", "--token-file", &ann],
    );
    let id = submitted.out.trim_end().to_owned();
    let follow = |token: &str| {
        let args = ["logs", &id, "--follow", "--coordinator", &service.url, "--token-file", token];
        Process::spawn(&mut folder.command(&args))
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (_upload, uploaded) = runtime.block_on(upload_without_end(&service, 1, &folder.read(&joe)));
    let (mut of_ann, mut of_eve) = (follow(&ann), follow(&eve));
    let mut worker =
        Process::spawn(worker_command(&service.url, "node").arg("--token-file").arg(folder.path(&node)));
    eventually(&|| service.log(), || {
        service.run(&folder, &["workers", "--token-file", &ann]).out.contains("node")
    });
    // At once, as the service may read the file at any moment.
    fs::write(folder.path("tokens.new"), kept).unwrap();
    fs::rename(folder.path("tokens.new"), folder.path("tokens")).unwrap();
    let ended = runtime.block_on(uploaded).unwrap().expect_err("the upload has no end");
    // With another message if the service had not begun to read it yet.
    assert_eq!(ended.code(), tonic::Code::Unauthenticated, "{ended}");
    assert_eq!(of_eve.wait().code(), Some(2), "{}", of_eve.log());
    assert!(of_eve.log().contains("the token was removed"), "{}", of_eve.log());
    assert_eq!(worker.wait().code(), Some(2), "{}", worker.log());
    assert!(of_ann.ended().is_none(), "{}", of_ann.log());
    of_ann.kill();
}

#[test]
fn actions_without_the_needed_role_are_refused_and_audited() {
    let folder = folder();
    let token = |name: &str, role: &str| {
        let secret = folder.grammaton(&["token", name, role, "--tokens", "tokens"]);
        fs::write(folder.path(&format!("{name}.token")), secret).unwrap();
        format!("{name}.token")
    };
    let [ann, bob, eve, node, boss] = [
        token("ann", "submit"),
        token("bob", "submit"),
        token("eve", "read"),
        token("node", "work"),
        token("boss", "operate"),
    ];
    let service = Serving::start(&folder, &["--tokens", "tokens"]);
    let as_whom =
        |token: &str, args: &[&str]| service.run(&folder, &[args, &["--token-file", token]].concat());
    let id = as_whom(&ann, &["submit", "em.toml"]).out.trim_end().to_owned();
    let refused = |token: &str, args: &[&str], why: &str| {
        let printed = as_whom(token, args);
        assert!(printed.code == 2 && printed.log.contains(why), "{args:?}: {}", printed.log);
    };
    refused(&eve, &["submit", "em.toml"], "lacks the role submit");
    refused(&eve, &["cancel", &id], "lacks the role submit");
    refused(&bob, &["cancel", &id], "the job is ann's; to cancel the jobs of others takes the role operate");
    refused(&node, &["jobs"], "lacks the role read");
    fs::write(folder.path("forged"), "0123456789abcdef0123456789abcdef").unwrap();
    refused("forged", &["jobs"], "the token is not the coordinator's");
    let printed = service.run(&folder, &["jobs"]);
    assert!(printed.code == 2 && printed.log.contains("a token is needed"), "{}", printed.log);
    // A person's token is not for workers.
    let mut person =
        Process::spawn(worker_command(&service.url, "person").arg("--token-file").arg(folder.path(&ann)));
    assert_eq!(person.wait().code(), Some(2), "{}", person.log());
    assert!(as_whom(&eve, &["status", &id]).out.contains("submitted by ann"));
    refused(&eve, &["delete", &id], "lacks the role submit");
    refused(&bob, &["delete", &id], "the job is ann's; to delete the jobs of others takes the role operate");
    assert_eq!(as_whom(&boss, &["cancel", &id]).code, 0);
    eventually(&|| service.log(), || as_whom(&eve, &["status", &id]).out.contains("cancelled"));
    assert_eq!(as_whom(&ann, &["delete", &id]).out, "deleted\n");
    let audit = fs::read_to_string(service.store.join("audit.jsonl")).unwrap();
    for (who, what) in [
        ("ann", "submit"),
        ("bob", "cancel refused"),
        ("boss", "cancel"),
        ("bob", "delete refused"),
        ("ann", "delete"),
    ] {
        let is_it = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["who"] == who && line["what"] == what
        };
        assert!(audit.lines().any(is_it), "{who} {what}: {audit}");
    }
}

/// Beyond a limit of file sizes the system sends a signal that would end the service: the write fails instead, as on a full disk.
#[test]
fn a_limit_of_file_sizes_fails_a_write_and_not_the_service() {
    let folder = folder();
    let mut service = Serving::prepare(&folder, "store", &[], &[]);
    let listens = service.begin_by(|command| {
        let mut limited = std::process::Command::new("sh");
        limited
            .args(["-c", "ulimit -f 32; exec \"$0\" \"$@\""])
            .arg(command.get_program())
            .args(command.get_args());
        limited.current_dir(folder.path("")).env_remove("GRAMMATON_TOKEN").env_remove("GRAMMATON_LOG");
        limited
    });
    assert!(listens, "{}", service.log());
    let small = fs::read_to_string(folder.path("corpus.txt")).unwrap();
    let large: String = (0..20).map(|n| small.replace('a', &n.to_string())).collect();
    fs::write(folder.path("corpus.txt"), large).unwrap();
    let refused = service.run(&folder, &["submit", "em.toml"]);
    assert_ne!(refused.code, 0);
    assert!(refused.log.contains("the service cannot write"), "{}", refused.log);
    fs::write(folder.path("corpus.txt"), small).unwrap();
    let id = service.grammaton(&folder, &["submit", "em.toml"]);
    assert_eq!(service.job(&folder, &id)["state"], "running", "the service goes on");
}

/// Deaths of the service are not the fault of its jobs, however many there are in a row and without a checkpoint.
#[test]
fn no_death_of_the_service_counts_against_a_job() {
    let folder = folder();
    let mut service = Serving::start(&folder, &[]);
    let id = service.grammaton(&folder, &["submit", "em.toml"]);
    for starts in 2..=6 {
        service.kill();
        service.begin();
        let job = service.job(&folder, &id);
        assert_eq!((&job["state"], &job["starts"]), (&"running".into(), &starts.into()));
    }
    assert!(service.grammaton(&folder, &["status", &id]).contains("starts: 6\n"));
    let _worker = worker(&service, "alice");
    await_state(&service, &folder, &id, "done");
}

/// A user fills all places with long jobs of the highest priority; the job of another user runs all the same, and a paused job goes on
/// as if it had never stopped.
#[test]
#[ignore = "slow"]
fn a_job_is_paused_for_another_user_and_goes_on_with_the_same_bits() {
    let folder = folder();
    for name in ["ann", "eve"] {
        let token = folder.grammaton(&["token", name, "submit", "--tokens", "tokens"]);
        fs::write(folder.path(name), token.trim_end()).unwrap();
    }
    let service = Serving::start(&folder, &["--tokens", "tokens", "--running", "2", "--workers", "1"]);
    let as_user =
        |user: &str, args: &[&str]| service.grammaton(&folder, &[args, &["--token-file", user]].concat());
    let job = |id: &str| -> Value {
        serde_json::from_str(&as_user("ann", &["status", id, "--json"])).expect("a job is JSON")
    };
    let rounds = "inference.max_rounds=400";
    let of_eve: Vec<String> = (0..4)
        .map(|_| as_user("eve", &["submit", "vb.toml", "--set", rounds, "--priority", "100"]))
        .collect();
    eventually(&|| service.log(), || {
        of_eve[..2].iter().all(|id| job(id)["progress"]["round"].as_u64() >= Some(2))
    });
    let of_ann = as_user("ann", &["submit", "vb.toml", "--priority", "1", "--wait"]);
    let of_ann = of_ann.lines().next().unwrap_or_default();
    assert_eq!(job(of_ann)["state"], "done");
    assert!(of_eve.iter().all(|id| job(id)["state"] != "done"), "they are far longer");
    let paused: Vec<&String> = of_eve
        .iter()
        .filter(|id| as_user("eve", &["logs", id]).contains("paused, as the job of another user"))
        .collect();
    assert_eq!(paused.len(), 1);
    for id in &of_eve[2..] {
        as_user("eve", &["cancel", id]);
    }
    folder.grammaton(&["train", "vb.toml", "--set", rounds, "--quiet", "--out", "alone"]);
    let alone = Trained::read(&folder.path("alone"));
    for id in &of_eve[..2] {
        eventually(&|| service.log(), || job(id)["state"] == "done");
        assert_eq!(job(id)["parameters_sha256"], alone.digest());
    }
    assert_eq!(job(paused[0])["starts"], 2);
}

/// A signal is handled from the moment of the first line, which says that the service listens.
#[test]
fn a_service_that_listens_handles_signals() {
    let folder = folder();
    let mut service = Serving::start(&folder, &["--http", "127.0.0.1:0"]);
    for stop in 0..30 {
        let (code, log) = service.stop();
        assert_eq!(code, Some(0), "stop {stop}: {log}");
        service.begin();
    }
}

#[test]
fn a_second_service_in_the_same_store_is_refused() {
    let folder = folder();
    let mut service = Serving::start(&folder, &[]);
    let second = folder.run(&["serve", "--store", "store", "--listen", "127.0.0.1:0"]);
    assert!(second.code == 2 && second.log.contains("another service works there"), "{}", second.log);
    let open = folder.run(&["serve", "--store", "other", "--listen", "0.0.0.0:0"]);
    assert!(open.code == 2 && open.log.contains("refusing to listen beyond loopback"), "{}", open.log);
    let nowhere = folder.run(&["serve", "--store", "other"]);
    assert!(nowhere.code == 2 && nowhere.log.contains("no address to listen on"), "{}", nowhere.log);
    assert_eq!(service.stop().0, Some(0));
    let unreachable = service.run(&folder, &["jobs"]);
    assert!(
        unreachable.code == 2 && unreachable.log.contains("no coordinator answers at this address"),
        "{}",
        unreachable.log
    );
}

type Jobs = proto::v1::jobs_client::JobsClient<tonic::transport::Channel>;

/// Sends a malicious submission; returns the error.
async fn hostile(jobs: &mut Jobs, job: &str, inputs: &[(&str, [u8; 32])], name: &str) -> String {
    let input =
        |&(path, hash): &(&str, [u8; 32])| v1::JobInput { path: path.into(), hash: hash.to_vec().into() };
    let (inputs, name) = (inputs.iter().map(input).collect(), name.into());
    let request = v1::SubmitRequest { job: job.into(), inputs, name, ..Default::default() };
    jobs.submit(request).await.expect_err("it is not a job").message().to_owned()
}

type Uploading = tokio::task::JoinHandle<Result<tonic::Response<v1::Uploaded>, tonic::Status>>;

/// An upload that sends the head of its file, and nothing more until it is dropped; and how it ends.
async fn upload_without_end(
    service: &Serving,
    n: u8,
    token: &str,
) -> (mpsc::Sender<v1::UploadMessage>, Uploading) {
    let mut jobs = Jobs::connect(service.url.clone()).await.unwrap();
    let (outgoing, stream) = mpsc::channel(1);
    let head = v1::InputFile { hash: vec![n; 32].into(), size: 1 << 20 };
    outgoing.send(v1::UploadMessage { message: Some(Message::Head(head)) }).await.unwrap();
    let mut request = tonic::Request::new(ReceiverStream::new(stream));
    let header = format!("Bearer {}", token.trim_end()).parse().unwrap();
    request.metadata_mut().insert("authorization", header);
    (outgoing, tokio::spawn(async move { jobs.upload(request).await }))
}

#[test]
fn a_submission_waits_while_its_user_has_as_many_uploads_as_allowed() {
    let folder = folder();
    let service = Serving::start(&folder, &[]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let uploads: Vec<_> = (0..8).map(|n| runtime.block_on(upload_without_end(&service, n, ""))).collect();
    let mut client =
        Process::spawn(&mut folder.command(&["submit", "colloc.toml", "--coordinator", &service.url]));
    std::thread::sleep(Duration::from_secs(1));
    assert!(client.ended().is_none(), "{}", client.log());
    drop(uploads);
    assert_eq!(client.wait().code(), Some(0), "{}", client.log());
    assert_eq!(service.job(&folder, "1")["name"], "colloc");
}

#[test]
fn jobs_read_only_their_own_files() {
    let folder = folder();
    let service = Serving::start(&folder, &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut jobs = Jobs::connect(service.url.clone()).await.unwrap();
        let bring = |bytes: Vec<u8>, said: usize| {
            let hash = *blake3::hash(&bytes).as_bytes();
            let head = v1::InputFile { hash: hash.to_vec().into(), size: said as u64 };
            let message = |message| v1::UploadMessage { message: Some(message) };
            let pieces = bytes.chunks(1 << 20).map(|piece| message(Message::Data(piece.to_vec().into())));
            let messages: Vec<_> = std::iter::once(message(Message::Head(head))).chain(pieces).collect();
            (hash, tokio_stream::iter(messages))
        };
        let (corpus, messages) = bring(b"ab ab\nba\n".to_vec(), 9);
        jobs.upload(messages).await.unwrap();
        for said in [8, 10] {
            let refusal = jobs.upload(bring(b"ab ab\nbb\n".to_vec(), said).1).await.unwrap_err();
            assert!(
                refusal.message().contains("announced") || refusal.message().contains("9 of 10"),
                "{refusal}"
            );
        }
        let endless = jobs.upload(bring(vec![0; 3 << 20], usize::MAX).1).await.unwrap_err();
        assert!(endless.message().contains("--max-upload"), "{endless}");

        let job = |path: &str| format!("[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"{path}\"\n");
        let own = [("corpus.txt", corpus)];
        let secret = folder.path("vb.toml").display().to_string();
        for (path, why) in [
            (&secret[..], "the service lets jobs read what is sent with them"),
            ("../../../audit.jsonl", "the service lets jobs read what is sent with them"),
            ("s3://bucket/corpus.txt", "and URLs that it was started with"),
            ("corpus.txt/../job.toml", "the service lets jobs read what is sent with them"),
        ] {
            let refusal = hostile(&mut jobs, &job(path), &own, "name").await;
            assert!(refusal.contains(why), "{path}: {refusal}");
        }
        for path in ["../corpus.txt", "/corpus.txt", "a/../../corpus.txt", "", "a\nb"] {
            let refusal = hostile(&mut jobs, &job("corpus.txt"), &[(path, corpus)], "name").await;
            assert!(refusal.contains("not a path below the job's own folder"), "{path}: {refusal}");
        }
        let gone = hostile(&mut jobs, &job("corpus.txt"), &[("corpus.txt", [7; 32])], "name").await;
        assert!(gone.contains("does not have this file"), "{gone}");
        let name = hostile(&mut jobs, &job("corpus.txt"), &own, "two\nlines").await;
        assert!(name.contains("visible letters"), "{name}");
        let unknown = hostile(&mut jobs, &(job("corpus.txt") + "[inference]\nsed = 1\n"), &own, "name").await;
        assert!(unknown.starts_with("job.toml:6:1: unknown key \"sed\""), "{unknown}");
        assert!(jobs.list(v1::ListRequest::default()).await.unwrap().into_inner().jobs.is_empty());
    });
    let left = |part: &str| fs::read_dir(service.store.join(part)).unwrap().count();
    assert_eq!((left("jobs"), left("work"), left("files")), (0, 0, 1), "nothing is left of what was refused");
}
