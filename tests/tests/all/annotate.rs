//! The page of `grammaton annotate` in a real browser: by clicks, by keys, reloaded, in a narrow window; and that of a service, which is killed between two clicks.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;

use grammaton_tests::browser::Browser;
use grammaton_tests::folder::{Folder, examples};
use grammaton_tests::serving::Serving;
use grammaton_tests::{Process, requirement};
use serde_json::{Value, json};

/// Folder for screenshots, if one is set.
fn picture(browser: &Browser, name: &str) {
    if let Some(folder) = std::env::var_os("PAGE_PICTURES").map(PathBuf::from) {
        browser.picture(&folder.join(name));
    }
}

#[test]
fn lines_are_annotated_by_clicks_and_by_keys_and_learned_from() {
    let browser = match Browser::open() {
        Ok(browser) => browser,
        Err(why) => return requirement::missing("browser", &why),
    };
    let words = std::fs::read_to_string(examples().join("morphemes/words.txt")).unwrap();
    let folder = Folder::new(&[("words.txt", &words)]);
    folder.grammaton(&[
        "morphemes",
        "words.txt",
        "--chains",
        "2",
        "--sweeps",
        "6",
        "--out",
        "results",
        "--quiet",
    ]);
    let (_process, lines) = Process::spawn_read(&mut folder.command(&["annotate", "results"]));
    let url = lines.next().unwrap();
    browser.look(1200, 900, false);
    browser.go(&url);
    browser.until_text("Ready.");
    let file = || folder.read("results/annotated.txt");

    // A click makes or takes away a boundary, and keeps the line.
    let pressed = "document.querySelector('#lines li .gap').getAttribute('aria-pressed')";
    let before = browser.run(&format!("return {pressed}"));
    browser.click("#lines li .gap");
    browser.until(&format!("{pressed} !== '{}'", before.as_str().unwrap()));
    browser.until_text("1 lines are annotated");
    let said = file();
    assert_eq!(said.lines().count(), 1);
    browser.click("#undo");
    browser.until_text("0 lines are annotated");
    assert_eq!(file(), "");

    // The same by keys: the first gap, a boundary, the next line, "it is right".
    let press = |key: &str| {
        let event = format!("new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }})");
        browser.run(&format!("document.activeElement.dispatchEvent({event})"));
    };
    let is_at = |gap: u32| {
        let gap = format!("document.activeElement.matches('li.current .gap[data-gap=\"{gap}\"]')");
        browser.run(&format!("return {gap}")) == true
    };
    press("ArrowRight");
    assert!(is_at(2));
    press("ArrowLeft");
    assert!(is_at(1));
    browser.run("document.activeElement.click()"); // as space and enter do on a button
    browser.until_text("1 lines are annotated");
    assert_eq!(file(), said);
    assert!(
        browser.run("return document.activeElement.matches('li.current .gap')") == true,
        "the caret stays"
    );
    for n in 2..=12 {
        press("n");
        press("r");
        browser.until_text(&format!("{n} lines are annotated"));
    }
    press("u");
    browser.until_text("11 lines are annotated");
    picture(&browser, "annotate.png");

    // Two tabs and a reload: all that was said is there.
    let kept = file();
    browser.go(&url);
    browser.until_text("Ready.");
    assert_eq!(browser.run("return document.querySelectorAll('li.said').length"), 11);
    assert_eq!(file(), kept);

    // A word shows its lines; what is learned is shown.
    browser.click("#words button");
    browser.until_text("Lines with ");
    browser.click("#learn");
    browser.until_text("Learned in ");
    browser.until_text("lines have changed");
    picture(&browser, "annotate-learned.png");
    browser.look(390, 844, true);
    picture(&browser, "annotate-phone.png");
    let wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth";
    assert!(browser.run(&format!("return {wide}")) == false, "a phone has to scroll sideways");
}

const JOB: &str = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"words.txt\"\n\
    [inference]\nmethod = \"hastings\"\nmax_rounds = 6\nkeep_every = 2\n";

/// Sends a request to a page of a service; returns status and body.
fn send(host: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(host).unwrap();
    let n = body.len();
    let headers =
        format!("Host: {host}\r\nOrigin: http://{host}\r\nContent-Length: {n}\r\nConnection: close");
    write!(stream, "{method} {path} HTTP/1.1\r\n{headers}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// What was said is kept by a service that is killed, and the job is annotated where it was left; in a browser too.
#[test]
fn lines_of_a_job_are_annotated_over_kills_of_the_service() {
    let words = std::fs::read_to_string(examples().join("morphemes/words.txt")).unwrap();
    let words: String = words.split_inclusive('\n').take(200).collect();
    let folder = Folder::new(&[("words.txt", &words), ("job.toml", JOB)]);
    let mut service = Serving::start(&folder, &["--http", "127.0.0.1:0", "--workers", "2"]);
    let mut host = service.serving();
    service.grammaton(&folder, &["submit", "job.toml", "--wait"]);
    let state = |host: &str| -> Value {
        let (status, body) = send(host, "GET", "/jobs/1/annotate/state", "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    };
    let said = |state: &Value| -> Vec<usize> {
        let lines = state["lines"].as_array().unwrap().iter().enumerate();
        lines.filter(|(_, line)| !line["known"].is_null()).map(|(at, _)| at).collect()
    };
    for at in [5, 2, 9] {
        let before = state(&host);
        let n = before["lines"][at]["symbols"].as_array().unwrap().len();
        let known = "1".to_owned() + &"0".repeat(n - 2);
        let change = json!({ "line": at, "known": known, "version": before["version"] }).to_string();
        let (status, kept) = send(&host, "POST", "/jobs/1/annotate/annotations", &change);
        assert!(status == 200 && kept.contains("\"stale\":false"), "{kept}");
        service.kill();
        service.begin();
        host = service.serving();
    }
    assert_eq!(said(&state(&host)), [2, 5, 9]);
    let (status, learned) = send(&host, "POST", "/jobs/1/annotate/learned", "{}");
    assert_eq!((status, serde_json::from_str::<Value>(&learned).unwrap()), (200, state(&host)));
    let results = send(&host, "GET", "/jobs/1/files/boundaries.tsv", "");
    assert_eq!(results.0, 200, "the results are those of the job");

    let browser = match Browser::open() {
        Ok(browser) => browser,
        Err(why) => return requirement::missing("browser", &why),
    };
    browser.look(1200, 900, false);
    browser.go(&format!("http://{host}/jobs/1"));
    browser.click("#annotate");
    browser.until_text("Ready.");
    browser.click("#lines li .gap");
    browser.until_text("4 lines are annotated");
    service.kill();
    browser.click("#lines li:nth-child(2) .say");
    browser.until_text("no answer");
    service.begin();
    host = service.serving();
    assert_eq!(said(&state(&host)).len(), 4, "what was acknowledged");
    browser.go(&format!("http://{host}/jobs/1/annotate/"));
    browser.until_text("Ready.");
    browser.click("#views [data-view=annotated]");
    browser.until_text("Annotated lines (4)");
    browser.click("#learn");
    browser.until_text("Learned in ");
}
