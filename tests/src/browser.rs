//! A headless browser, driven over WebDriver: Chromium, from Debian's packages chromium and chromium-driver.
//!
//! In: actions of a user (go, fill in, click). Out: texts and pictures of the page. The protocol is JSON over HTTP, one request after the
//! other, so a plain socket is enough.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::{Process, SOON, eventually};

/// A browser with one page; it ends when this is dropped.
pub struct Browser {
    /// Address of the driver.
    address: String,
    session: String,
    driver: Process,
    /// Output of the driver, kept open so that it can write.
    _lines: crate::Lines,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser; the error names the missing program.
    pub fn open() -> Result<Browser, String> {
        let installed = |name: &str| {
            Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
        };
        if !installed("chromedriver") || !installed("chromium") {
            return Err(
                "no chromium with its driver; install Debian's packages chromium and chromium-driver"
                    .to_owned(),
            );
        }
        let (driver, lines) = Process::spawn_read(Command::new("chromedriver").arg("--port=0"));
        let port = loop {
            let line = lines.next().expect("the driver says where it listens");
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                break port.trim_end_matches('.').to_owned();
            }
        };
        let profile = tempfile::tempdir().expect("a temporary folder can be created");
        let args = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
        ];
        let mut args: Vec<String> = args.map(str::to_owned).to_vec();
        args.push(format!("--user-data-dir={}", profile.path().display()));
        let options = json!({ "args": args, "binary": which("chromium") });
        let wanted = json!({ "capabilities": { "alwaysMatch": { "browserName": "chrome", "acceptInsecureCerts": true, "goog:chromeOptions": options } } });
        let mut browser = Browser {
            address: format!("127.0.0.1:{port}"),
            session: String::new(),
            driver,
            _lines: lines,
            _profile: profile,
        };
        browser.session = browser.send("POST", "/session", &wanted)["sessionId"]
            .as_str()
            .expect("a session has an id")
            .to_owned();
        Ok(browser)
    }

    /// Sends a request to the driver; returns the value of its response.
    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let value = self.exchange(method, path, body);
        assert!(value["error"].is_null(), "{method} {path} {body}: {value}");
        value
    }

    /// As `send`, but the value may have an `error`.
    fn exchange(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(&self.address).expect("the driver listens");
        stream.set_read_timeout(Some(SOON)).expect("it is not nothing");
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .expect("it reads");
        let mut answer = BufReader::new(stream);
        let mut length = 0;
        for line in answer.by_ref().lines() {
            let line = line.expect("it answers").to_ascii_lowercase();
            if let Some(number) = line.strip_prefix("content-length:") {
                length = number.trim().parse().expect("a length is a number");
            } else if line.is_empty() {
                break;
            }
        }
        let mut json = vec![0; length];
        answer.read_exact(&mut json).expect("as long as it said");
        let json = String::from_utf8_lossy(&json);
        let mut answer: Value =
            serde_json::from_str(&json).unwrap_or_else(|error| panic!("{path}: {error}: {json}"));
        answer["value"].take()
    }

    fn ask(&self, path: &str, body: &Value) -> Value {
        self.send("POST", &format!("/session/{}{path}", self.session), body)
    }

    /// Loads a page.
    pub fn go(&self, url: &str) {
        self.ask("/url", &json!({ "url": url }));
    }

    /// Runs a script, which the page's content security policy does not restrict; returns its value.
    pub fn run(&self, script: &str) -> Value {
        self.ask("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Visible text of the page.
    pub fn text(&self) -> String {
        self.run("return document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the value of a script is true.
    pub fn until(&self, script: &str) {
        eventually(&|| format!("{script}: {}", self.text()), || {
            std::thread::sleep(Duration::from_millis(50));
            self.run(&format!("return Boolean({script})")) == true
        });
    }

    /// Waits until the page contains `text`.
    pub fn until_text(&self, text: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(text)));
    }

    fn find(&self, selector: &str) -> String {
        let found = self.ask("/element", &json!({ "using": "css selector", "value": selector }));
        let id = found.as_object().and_then(|found| found.values().next()).and_then(Value::as_str);
        id.unwrap_or_else(|| panic!("{selector}: {found}")).to_owned()
    }

    /// Clicks on the first element of a selector. Tries again if the page is rendered between finding and clicking.
    pub fn click(&self, selector: &str) {
        eventually(&|| format!("{selector}: {}", self.text()), || {
            let path = format!("/session/{}/element/{}/click", self.session, self.find(selector));
            let value = self.exchange("POST", &path, &json!({}));
            let (clicked, stale) = (value["error"].is_null(), value["error"] == "stale element reference");
            assert!(clicked || stale, "{selector}: {value}");
            clicked
        });
    }

    /// Types into a field.
    pub fn fill(&self, selector: &str, text: &str) {
        self.ask(&format!("/element/{}/value", self.find(selector)), &json!({ "text": text }));
    }

    fn devtools(&self, command: &str, params: &Value) -> Value {
        self.ask("/goog/cdp/execute", &json!({ "cmd": command, "params": params }))
    }

    /// Sets the size of the window in pixels, and the colour scheme.
    pub fn look(&self, width: u32, height: u32, dark: bool) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", &features);
    }

    /// Writes a screenshot of the window.
    pub fn picture(&self, path: &Path) {
        let picture = self.send("GET", &format!("/session/{}/screenshot", self.session), &Value::Null);
        let bytes = BASE64_STANDARD.decode(picture.as_str().expect("it is text")).expect("in base 64");
        std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

impl Drop for Browser {
    /// Ends the session, and with it the browser, which would outlive the driver.
    fn drop(&mut self) {
        let session = format!("/session/{}", self.session);
        // A test that has failed has said so.
        let _ = catch_unwind(AssertUnwindSafe(|| self.exchange("DELETE", &session, &json!({}))));
        self.driver.signal("TERM");
        self.driver.wait();
    }
}

/// Path of a program.
fn which(name: &str) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file());
    found.map_or(name.to_owned(), |path| path.display().to_string())
}
