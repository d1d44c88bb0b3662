//! The page of a service in a real browser: live updates, and actions by users with the needed role.

use std::fs;
use std::path::PathBuf;

use grammaton_tests::browser::Browser;
use grammaton_tests::certificates::{Authority, Valid};
use grammaton_tests::cluster::worker_command;
use grammaton_tests::folder::{Folder, examples};
use grammaton_tests::{Lines, Process, requirement};
use serde_json::Value;

/// Two runs of many rounds, scored every few rounds.
const JOB: &str = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n\
    [inference]\nmethod = \"hastings\"\nrestarts = 2\nmax_rounds = 2000\n[output]\nscore_every = 5\n";

/// A service with tokens, and its address.
struct Service {
    folder: Folder,
    _process: Process,
    _lines: Lines,
    url: String,
    page: String,
}

impl Service {
    fn start(more: &[&str]) -> Service {
        let corpus = fs::read_to_string(examples().join("segmentation/corpus.txt")).unwrap();
        let corpus: String = corpus.split_inclusive('\n').take(1500).collect();
        let folder = Folder::new(&[("job.toml", JOB), ("corpus.txt", &corpus)]);
        for (name, role) in [("op", "operate"), ("eve", "read"), ("node", "work")] {
            let secret = folder.grammaton(&["token", name, role, "--tokens", "tokens"]);
            fs::write(folder.path(name), secret.trim()).unwrap();
        }
        let args = ["serve", "--store", "store", "--tokens", "tokens", "--json", "--dead-after", "3"];
        let addresses = ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"];
        let (process, lines) =
            Process::spawn_read(&mut folder.command(&[&args[..], &addresses, more].concat()));
        let address = |of: &str| {
            let line = lines.next().unwrap_or_else(|| panic!("it ended: {}", process.log()));
            let event: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(event["event"], of);
            format!("http://{}", event["address"].as_str().unwrap())
        };
        let (url, page) = (address("listening"), address("serving"));
        Service { folder, _process: process, _lines: lines, url, page }
    }

    fn worker(&self, name: &str) -> Process {
        let token = self.folder.path("node");
        Process::spawn(worker_command(&self.url, name).arg("--token-file").arg(token))
    }

    fn submit(&self, name: &str, more: &[&str]) {
        let args = ["submit", "job.toml", "--name", name, "--coordinator", &self.url, "--token-file", "op"];
        self.folder.grammaton(&[&args[..], more].concat());
    }

    fn log_in(&self, browser: &Browser, name: &str) {
        browser.go(&format!("{}/login", self.page));
        browser.fill("#token", &self.folder.read(name));
        browser.click(".login button");
        browser.until("location.pathname === '/'");
    }
}

/// Folder for screenshots, if one is set.
fn pictures() -> Option<PathBuf> {
    std::env::var_os("PAGE_PICTURES").map(PathBuf::from)
}

#[test]
fn a_user_watches_jobs_and_cancels_one() {
    let browser = match Browser::open() {
        Ok(browser) => browser,
        Err(why) => return requirement::missing("browser", &why),
    };
    let service = Service::start(&[]);
    let picture = |name: &str, width, height, dark| {
        browser.look(width, height, dark);
        if let Some(folder) = pictures() {
            browser.picture(&folder.join(name));
        }
        browser.look(1000, 1200, false);
    };
    browser.look(1000, 1200, false);
    let [mut worker, other] = ["alice", "bob"].map(|name| service.worker(name));
    service.submit("unigram, a quick look", &["--set", "inference.max_rounds=10"]);
    service.submit("unigram, 2000 rounds", &["--priority", "20"]);

    // Nothing is shown before login.
    browser.go(&format!("{}/jobs/2", service.page));
    assert!(browser.run("return location.pathname") == "/login", "{}", browser.text());
    browser.fill("#token", "forged");
    browser.click(".login button");
    browser.until_text("not a token of this service");
    service.log_in(&browser, "eve");
    browser.until_text("unigram, 2000 rounds");

    // A running job: rounds, curve and strings are updated.
    browser.click("#job-2");
    browser.until_text("live");
    browser.until("document.querySelector('#curves path.line')?.getAttribute('d').split('L').length > 8");
    let curve = "document.querySelector('#curves path.line').getAttribute('d')";
    let before = browser.run(&format!("return {curve}"));
    browser.until(&format!("{curve} !== {before}"));
    for id in ["learned", "sentences", "runs", "log"] {
        browser.until(&format!("document.getElementById('{id}').innerText.length > 20"));
    }
    assert!(browser.run("return getComputedStyle(document.querySelector('#learned li')).backgroundImage.includes('gradient')") == true);

    // The role read has no buttons, and the service would refuse the request.
    assert!(browser.run("return document.querySelector('#cancel').checkVisibility()") == false);
    browser.run("document.querySelector('#actions form').submit()");
    browser.until_text("lacks the role submit");
    service.log_in(&browser, "op");

    // A killed worker is shown with the cause.
    browser.go(&format!("{}/workers", service.page));
    browser.until_text("bob");
    worker.kill();
    browser.until("/alice\\s+gone: /.test(document.body.innerText)");
    picture("page-workers.png", 1000, 640, false);
    browser.go(&format!("{}/jobs/2", service.page));
    browser.until_text("gone: ");
    browser.until("document.querySelectorAll('#curves svg').length >= 3");
    picture("page-job.png", 1000, 1250, false);
    picture("page-job-dark.png", 1000, 1250, true);
    picture("page-job-phone.png", 390, 844, false);
    picture("page-job-long.png", 1000, 3400, false);
    let wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth";
    browser.look(390, 844, false);
    assert!(browser.run(&format!("return {wide}")) == false, "a phone has to scroll sideways");
    browser.look(1000, 1200, false);

    // All jobs; names are escaped.
    browser.go(&format!("{}/", service.page));
    browser.until("document.querySelector('.state.done')");
    browser.until("document.querySelector('progress').value > 0");
    picture("page-jobs.png", 1000, 420, false);
    let hostile = "<img src=x onerror=document.title='hit'>";
    service.submit(hostile, &[]);
    browser.until_text(hostile);
    assert!(browser.run("return document.title") == "Jobs · Grammaton", "no script of a job's name was run");
    browser.go(&format!("{}/jobs/2", service.page));

    // A user with the needed role cancels by keyboard; the page shows it without a reload.
    browser.run("document.querySelector('#cancel').focus()");
    assert!(browser.run("return document.querySelector('#cancel').matches(':focus-visible')") == true);
    browser.click("#cancel");
    browser.until("document.querySelector('#head .state').innerText === 'cancelled'");
    browser.until("document.querySelector('#resume')");

    // The first job is finished, and says which file is the answer. Its report is shown with its own styles, and runs its own script only.
    browser.go(&format!("{}/jobs/1", service.page));
    browser.until("document.querySelector('#head .state').innerText === 'done'");
    assert!(browser.run("return document.title") == "unigram, a quick look · job 1 · Grammaton");
    assert!(browser.run("return document.querySelector('#learned h2').innerText") == "Learned");
    assert!(
        browser
            .run("return document.querySelector('.files .answer').innerText")
            .as_str()
            .unwrap()
            .starts_with("segmentation.mbr-vote.txt")
    );
    picture("page-done.png", 1000, 1250, false);
    browser.click("#report");
    browser.until_text("training report");
    assert!(browser.run("return document.styleSheets.length") == 1);
    browser.until("document.querySelector('#controls').checkVisibility()");
    drop(other);
}

#[test]
fn a_certificate_makes_it_https() {
    let browser = match Browser::open() {
        Ok(browser) => browser,
        Err(why) => return requirement::missing("browser", &why),
    };
    let dir = tempfile::tempdir().unwrap();
    let files = Authority::new("page").identity(dir.path(), "page", &["127.0.0.1"], Valid::Now);
    let [certificate, key] = [&files.certificate, &files.key].map(|path| path.to_str().unwrap());
    let mut service = Service::start(&["--cert", certificate, "--key", key]);
    service.page = service.page.replace("http:", "https:");
    service.log_in(&browser, "eve");
    assert!(
        browser.run("return location.protocol + document.cookie") == "https:",
        "no script sees the cookie"
    );
    browser.until_text("live");
}
