//! `grammaton annotate`: the page by its requests. What is said is in the file, whoever is killed; what is learned is what training learns.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::cli::{at, folder, grammaton, refused};

/// A running page.
struct Page {
    process: Child,
    /// Address and port.
    host: String,
    token: String,
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Page {
    fn open(results: &str, file: &str) -> Page {
        let mut process = Command::new(assert_cmd::cargo::cargo_bin("grammaton"))
            .args(["annotate", results, "--annotations", file])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let (host, token) = url.trim().trim_start_matches("http://").split_once('/').unwrap();
        assert!(host.starts_with("127.0.0.1:"), "{url}");
        Page { process, host: host.to_owned(), token: token.trim_end_matches('/').to_owned() }
    }

    /// Sends a request with these headers; returns status and body.
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let n = body.len();
        write!(stream, "{method} {path} HTTP/1.0\r\n{headers}Content-Length: {n}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn get(&self, name: &str) -> String {
        let (status, body) =
            self.send("GET", &format!("/{}/{name}", self.token), &[("Host", &self.host)], "");
        assert_eq!(status, 200, "{body}");
        body
    }

    fn state(&self) -> Value {
        serde_json::from_str(&self.get("state")).unwrap()
    }

    fn post(&self, name: &str, body: &Value) -> (u16, String) {
        let origin = format!("http://{}", self.host);
        let headers = [("Host", &self.host[..]), ("Origin", &origin)];
        self.send("POST", &format!("/{}/{name}", self.token), &headers, &body.to_string())
    }

    /// Annotates a line, or takes its annotation back.
    fn say(&self, line: usize, ends: Option<&[u32]>, version: &Value) -> Value {
        let known = ends.map(|ends| -> String {
            let n = *ends.last().unwrap();
            (1..n).map(|at| if ends.contains(&at) { '1' } else { '0' }).collect()
        });
        let (status, body) =
            self.post("annotations", &json!({ "line": line, "known": known, "version": version }));
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }
}

/// Words of stems and suffixes with their morphemes, and results of them: in `first` without annotations.
fn results() -> (TempDir, Vec<String>) {
    let (stems, suffixes) =
        (["lok", "pa", "tier", "mun", "zabo", "kir"], ["", " ing", " s", " ed", " ing s"]);
    let morphemes: Vec<String> =
        stems.iter().flat_map(|stem| suffixes.map(|suffix| format!("{stem}{suffix}"))).collect();
    let words: String = morphemes.iter().map(|line| line.replace(' ', "") + "\n").collect();
    let dir = folder(&[("words.txt", words.as_bytes())]);
    let (text, first) = (at(&dir, "words.txt"), at(&dir, "first"));
    grammaton(&[&["morphemes", &text, "--out", &first], &RUN[..]].concat()).success();
    (dir, morphemes)
}

const RUN: [&str; 5] = ["--quiet", "--chains", "3", "--sweeps", "8"];

/// Ends of the segments of a line.
fn ends(line: &str) -> Vec<u32> {
    let lengths = line.split(' ').map(|segment| segment.chars().count() as u32);
    lengths
        .scan(0, |end, length| {
            *end += length;
            Some(*end)
        })
        .collect()
}

#[test]
fn what_is_said_is_kept_over_tabs_reloads_and_kills() {
    let (dir, morphemes) = results();
    let (first, file) = (at(&dir, "first"), at(&dir, "annotated.txt"));
    fs::write(&file, "of another text\n").unwrap();
    let page = Page::open(&first, &file);
    let state = page.state();
    assert_eq!(state["lines"].as_array().unwrap().len(), morphemes.len());
    // Two tabs: the first change of each is made by the version that both have read.
    let old = &state["version"];
    let kept = page.say(3, Some(&ends(&morphemes[3])), old);
    assert_eq!(kept["stale"], false);
    let other = page.say(4, Some(&[1, 2, ends(&morphemes[4]).pop().unwrap()]), old);
    assert_eq!(other["stale"], true, "the other tab is to reload");
    let kept = page.say(4, Some(&ends(&morphemes[4])), &other["version"]);
    assert_eq!(kept["stale"], false);
    let written = || {
        let text = fs::read_to_string(&file).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let sorted = |of: &[usize]| {
        let mut lines: Vec<String> = of.iter().map(|&at| morphemes[at].clone()).collect();
        lines.push("of another text".to_owned());
        lines.sort();
        lines
    };
    assert_eq!(written(), sorted(&[3, 4]));
    let annotated = |state: &Value| -> Vec<usize> {
        let lines = state["lines"].as_array().unwrap().iter().enumerate();
        lines.filter(|(_, line)| !line["known"].is_null()).map(|(at, _)| at).collect()
    };
    assert_eq!(annotated(&page.state()), [3, 4]);
    // Killed between two changes, and begun again.
    drop(page);
    assert_eq!(written(), sorted(&[3, 4]));
    let page = Page::open(&first, &file);
    assert_eq!(annotated(&page.state()), [3, 4]);
    page.say(3, None, &page.state()["version"]);
    assert_eq!(written(), sorted(&[4]));
    // An editor changes the file; the page reads it at its next change, whose answer says that it is stale.
    let before = page.state();
    fs::write(&file, fs::read_to_string(&file).unwrap() + &morphemes[9] + "\n").unwrap();
    assert_eq!(page.say(10, Some(&ends(&morphemes[10])), &before["version"])["stale"], true);
    assert_eq!(written(), sorted(&[4, 9, 10]));
    // What is no segmentation of a line changes nothing.
    for bad in [json!(""), json!("1"), json!("111"), json!("??"), json!("1x"), json!([1, 3]), json!(7)] {
        let body = json!({ "line": 0, "known": bad, "version": "" });
        assert_eq!(page.post("annotations", &body).0, 400, "{bad}");
    }
    assert_eq!(page.post("annotations", &json!({ "line": 1000, "known": null, "version": "" })).0, 400);
    assert_eq!(written(), sorted(&[4, 9, 10]));
}

#[test]
fn what_is_learned_is_what_training_learns() {
    let (dir, morphemes) = results();
    let [text, first, file, trained] =
        ["words.txt", "first", "annotated.txt", "trained"].map(|name| at(&dir, name));
    let page = Page::open(&first, &file);
    assert_eq!(page.post("learned", &json!({})).0, 409, "there is nothing to learn from yet");
    let mut version = page.state()["version"].clone();
    // Not as the models find them: a segment ends after the first letter.
    for at in (0..morphemes.len()).step_by(4) {
        let word = morphemes[at].replace(' ', "");
        let said = format!("{} {}", &word[..1], &word[1..]);
        version = page.say(at, Some(&ends(&said)), &version)["version"].take();
    }
    let (status, state) = page.post("learned", &json!({}));
    let state: Value = serde_json::from_str(&state).unwrap();
    assert_eq!((status, &state), (200, &page.state()));
    let train = |out: &str, annotated: &str| {
        let args = ["morphemes", &text, "--annotated", annotated, "--out", out];
        grammaton(&[&args[..], &RUN].concat()).success();
    };
    train(&trained, &file);
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let learned = page.get("segmented.txt");
    assert_eq!(learned, read("trained/segmentation.crf.txt"));
    assert_ne!(learned, read("first/segmentation.mbr-vote.txt"), "something was learned");
    let percents: Vec<u64> = read("trained/boundaries.tsv")
        .lines()
        .skip(1)
        .map(|row| (row.split('\t').nth(2).unwrap().parse::<f64>().unwrap() * 100.0).round() as u64)
        .collect();
    let shown =
        state["lines"].as_array().unwrap().iter().flat_map(|line| line["probabilities"].as_array().unwrap());
    let shown: Vec<u64> = shown.map(|percent| percent.as_u64().unwrap()).collect();
    assert_eq!(shown.len(), percents.len());
    assert!(shown.iter().zip(&percents).all(|(a, b)| a.abs_diff(*b) <= 1));
    // A result that has learned from other lines keeps what its models found, so nothing is lost.
    fs::write(dir.path().join("few.txt"), morphemes[1].clone() + "\n" + &morphemes[2] + "\n").unwrap();
    train(&at(&dir, "few"), &at(&dir, "few.txt"));
    assert_eq!(Page::open(&at(&dir, "few"), &file).get("segmented.txt"), learned);
    // And so is what a page learns that is opened again.
    drop(page);
    assert_eq!(Page::open(&first, &file).get("segmented.txt"), learned);
}

#[test]
fn other_pages_and_hosts_are_refused() {
    let (dir, _) = results();
    let (first, file) = (at(&dir, "first"), at(&dir, "annotated.txt"));
    let page = Page::open(&first, &file);
    let state = format!("/{}/state", page.token);
    let host = ("Host", &page.host[..]);
    assert_eq!(page.send("GET", &state, &[host], "").0, 200);
    for path in ["/", "/state", "/00000000000000000000000000000000/state"] {
        assert_eq!(page.send("GET", path, &[host], "").0, 403, "{path}");
    }
    assert_eq!(page.send("GET", &state, &[("Host", "evil.example")], "").0, 421);
    let own = format!("http://{}", page.host);
    let change = json!({ "line": 0, "known": null, "version": "" }).to_string();
    let path = format!("/{}/annotations", page.token);
    for (headers, status) in [
        (vec![host], 403),
        (vec![host, ("Origin", "http://evil.example")], 403),
        (vec![host, ("Origin", &own), ("Sec-Fetch-Site", "cross-site")], 403),
        (vec![host, ("Origin", &own)], 200),
    ] {
        assert_eq!(page.send("POST", &path, &headers, &change).0, status, "{headers:?}");
    }
    let html = page.get("");
    assert!(html.contains("annotate.js") && !html.contains("http"), "{html}");
    refused(&["annotate", &at(&dir, "nowhere")], &["nowhere", "no finished result"]);
    for (nonsense, why) in [
        (&b"lok\nlo\x01k\n"[..], "annotated.txt:2"),
        (b"lok\n\xff\xfe", "annotated.txt:2"),
        (b"\x1f\x8b\x08", "unpack"),
    ] {
        fs::write(&file, nonsense).unwrap();
        refused(&["annotate", &first, "--annotations", &file], &["annotated.txt", why]);
        assert_eq!(fs::read(&file).unwrap(), nonsense);
    }
}

/// A file with words and their analyses, marks of single positions, empty lines and carriage returns is learned from as by training, and lines
/// that are not changed stay byte for byte.
#[test]
fn a_file_of_any_form_is_learned_from_as_by_training() {
    let (dir, morphemes) = results();
    let [text, first, file, trained] =
        ["words.txt", "marked", "annotated.txt", "trained"].map(|name| at(&dir, name));
    let train = |out: &str, annotated: &str| {
        let marks = ["--boundary-mark", "|", "--joined-mark", "~"];
        let args = ["morphemes", &text, "--annotated", annotated, "--out", out];
        grammaton(&[&args[..], &marks, &RUN].concat()).success();
    };
    fs::write(dir.path().join("seed.txt"), "l|ok\n").unwrap();
    train(&first, &at(&dir, "seed.txt"));
    // `l ok`, `lo~king`, `lok|s`, an analysis of `loked`, `lo king s`, and lines of other words.
    let forms =
        ["l ok\r\n", "lo~king\n", "\n", "lok|s\n", "loked\tl ok ed, lok ed\n", "lo king s\n"].concat();
    let more: String = morphemes[8..14].iter().map(|line| line.clone() + "\n").collect();
    fs::write(&file, forms.clone() + &more).unwrap();
    let page = Page::open(&first, &file);
    let state = page.state();
    let known: Vec<&str> = (0..5).map(|at| state["lines"][at]["known"].as_str().unwrap()).collect();
    assert_eq!(known, ["10", "?0???", "??1", "1010", "010001"]);
    train(&trained, &file);
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(page.get("segmented.txt"), read("trained/segmentation.crf.txt"));
    assert_ne!(page.get("segmented.txt"), read("marked/segmentation.crf.txt"));
    // One line changes, in its place; another one is said as it was known.
    page.say(2, Some(&[3, 4]), &state["version"]);
    page.say(3, Some(&[1, 3, 5]), &state["version"]);
    assert_eq!(read("annotated.txt"), forms.replace("lok|s\n", "lok s\n") + &more);
    assert_eq!(page.get("annotated.txt"), read("annotated.txt"));
    assert_eq!(page.post("learned", &json!({})).0, 200);
    train(&at(&dir, "again"), &file);
    assert_eq!(page.get("segmented.txt"), read("again/segmentation.crf.txt"));
}

/// Law: whatever the segmentation without annotations is by, learning again is what training gives.
#[test]
fn a_result_without_annotations_is_learned_from_as_by_training() {
    let (dir, morphemes) = results();
    let [text, file] = ["words.txt", "annotated.txt"].map(|name| at(&dir, name));
    fs::write(&file, morphemes[8..14].join("\n")).unwrap();
    let mut found = Vec::new();
    for by in ["output.threshold=0", "output.contexts=false", "output.contexts=true"] {
        let [plain, trained] = ["plain", "trained"].map(|name| at(&dir, &format!("{name}-{by}")));
        let train = |more: &[&str]| {
            grammaton(&[&["morphemes", &text, "--set", by], more, &RUN].concat()).success();
        };
        train(&["--out", &plain]);
        train(&["--out", &trained, "--annotated", &file]);
        let learned = Page::open(&plain, &file).get("segmented.txt");
        assert_eq!(learned, fs::read_to_string(format!("{trained}/segmentation.crf.txt")).unwrap(), "{by}");
        found.push(fs::read_to_string(format!("{plain}/boundaries.tsv")).unwrap());
    }
    assert!(found[0] != found[1] && found[1] != found[2]);
}
