//! An object store in this process that speaks the part of S3's protocol that Grammaton uses, and can fail while objects are read.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// What happens to an object on its way to who reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The connection ends in the middle.
    Cut,
    /// A bit is changed.
    Flip,
    /// The bytes come seconds later.
    Late,
}

/// A server with one bucket, `models`.
pub struct S3 {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    /// Part of the names of objects, the fault, and how many reads have it.
    fault: Option<(String, Fault, usize)>,
    requests: usize,
}

const BUCKET: &str = "/models";

impl S3 {
    /// Starts the server on a port of its own.
    pub fn start() -> S3 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let (address, state) = (listener.local_addr().expect("it is bound"), Arc::<Mutex<State>>::default());
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                // A connection ends with its client.
                std::thread::spawn(move || drop(converse(&stream, &state)));
            }
        });
        S3 { address, state }
    }

    /// Variables by which programs find it.
    pub fn environment(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".into()),
            ("AWS_ACCESS_KEY_ID", "tester".into()),
            ("AWS_SECRET_ACCESS_KEY", "secret".into()),
            ("AWS_REGION", "us-east-1".into()),
        ]
    }

    /// Has the next `times` reads of objects with `part` in their names fail.
    pub fn fail(&self, part: &str, fault: Fault, times: usize) {
        self.state.lock().fault = Some((part.to_owned(), fault, times));
    }

    /// Number of requests so far.
    pub fn requests(&self) -> usize {
        self.state.lock().requests
    }

    /// Reads of the fault that are still to fail.
    pub fn left(&self) -> usize {
        self.state.lock().fault.as_ref().map_or(0, |(.., left)| *left)
    }
}

/// A request.
struct Asked {
    verb: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

fn read(from: &mut BufReader<&TcpStream>) -> std::io::Result<Option<Asked>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (verb, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let path = unescaped(path);
    let key = path.strip_prefix(BUCKET).unwrap_or(&path).trim_start_matches('/').to_owned();
    Ok(Some(Asked { verb, path: key, query: query.to_owned(), headers, body }))
}

fn unescaped(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.extend(code);
        bytes.extend_from_slice(part.get(2..).unwrap_or_default().as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Answers the requests of a connection, one after the other.
fn converse(stream: &TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut from = BufReader::new(stream);
    while let Some(asked) = read(&mut from)? {
        let mut to = stream;
        let (code, headers, mut body) = answer(&asked, &mut state.lock());
        let fault = fault_of(&asked, state);
        if fault == Some(Fault::Flip)
            && let Some(byte) = body.first_mut()
        {
            *byte ^= 1;
        }
        if fault == Some(Fault::Late) {
            std::thread::sleep(Duration::from_secs(2));
        }
        write!(to, "HTTP/1.1 {code}\r\nContent-Length: {}\r\n{headers}\r\n", body.len())?;
        if fault == Some(Fault::Cut) {
            return to.write_all(&body[..body.len() / 2]);
        }
        if asked.verb != "HEAD" {
            to.write_all(&body)?;
        }
    }
    Ok(())
}

fn fault_of(asked: &Asked, state: &Mutex<State>) -> Option<Fault> {
    let mut state = state.lock();
    let (part, fault, left) = state.fault.as_mut()?;
    let is_hit = *left > 0 && asked.verb == "GET" && asked.query.is_empty() && asked.path.contains(&**part);
    *left -= usize::from(is_hit);
    is_hit.then_some(*fault)
}

fn etag(bytes: &[u8]) -> String {
    format!("\"{}\"", &blake3::hash(bytes).to_hex()[..32])
}

fn answer(asked: &Asked, state: &mut State) -> (&'static str, String, Vec<u8>) {
    state.requests += 1;
    let none = || String::new();
    let known = state.objects.get(&asked.path);
    match &asked.verb[..] {
        "GET" if asked.path.is_empty() => ("200 OK", none(), list(&asked.query, &state.objects).into_bytes()),
        "GET" | "HEAD" => match known {
            None => ("404 Not Found", none(), b"<Error><Code>NoSuchKey</Code></Error>".to_vec()),
            Some(bytes) => {
                let date = "Last-Modified: Wed, 01 Jan 2025 00:00:00 GMT\r\n";
                let mut headers = format!("ETag: {}\r\n{date}", etag(bytes));
                let range = asked.headers.get("range").and_then(|range| range.strip_prefix("bytes="));
                let begin: usize = range.and_then(|range| range.split('-').next()?.parse().ok()).unwrap_or(0);
                if range.is_none() {
                    return ("200 OK", headers, bytes.clone());
                }
                headers += &format!("Content-Range: bytes {begin}-{}/{}\r\n", bytes.len() - 1, bytes.len());
                ("206 Partial Content", headers, bytes[begin..].to_vec())
            }
        },
        "PUT" => {
            let wants_none = asked.headers.contains_key("if-none-match");
            let wanted = asked.headers.get("if-match");
            if wants_none && known.is_some()
                || wanted.is_some_and(|tag| known.map(|bytes| etag(bytes)) != Some(tag.clone()))
            {
                return ("412 Precondition Failed", none(), Vec::new());
            }
            let headers = format!("ETag: {}\r\n", etag(&asked.body));
            state.objects.insert(asked.path.clone(), asked.body.clone());
            ("200 OK", headers, Vec::new())
        }
        "DELETE" => {
            state.objects.remove(&asked.path);
            ("204 No Content", none(), Vec::new())
        }
        "POST" => {
            let body = String::from_utf8_lossy(&asked.body).into_owned();
            let mut deleted = String::new();
            for key in body.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next()) {
                state.objects.remove(key);
                deleted += &format!("<Deleted><Key>{key}</Key></Deleted>");
            }
            ("200 OK", none(), format!("<DeleteResult>{deleted}</DeleteResult>").into_bytes())
        }
        _ => ("405 Method Not Allowed", none(), Vec::new()),
    }
}

/// Names below a prefix, or directly below it.
fn list(query: &str, objects: &BTreeMap<String, Vec<u8>>) -> String {
    let value = |name: &str| {
        let found = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        found.map(unescaped).unwrap_or_default()
    };
    let (prefix, delimiter) = (value("prefix"), value("delimiter"));
    let (mut contents, mut folders) = (String::new(), Vec::new());
    for (key, bytes) in objects.iter().filter(|(key, _)| key.starts_with(&prefix)) {
        match key[prefix.len()..].split_once('/') {
            Some((folder, _)) if !delimiter.is_empty() => {
                let folder = format!("<CommonPrefixes><Prefix>{prefix}{folder}/</Prefix></CommonPrefixes>");
                if folders.last() != Some(&folder) {
                    folders.push(folder);
                }
            }
            _ => {
                let tag = etag(bytes).replace('"', "&quot;");
                contents += &format!(
                    "<Contents><Key>{key}</Key><LastModified>2025-01-01T00:00:00.000Z</LastModified><ETag>{tag}</ETag><Size>{}</Size></Contents>",
                    bytes.len()
                );
            }
        }
    }
    format!(
        "<ListBucketResult><IsTruncated>false</IsTruncated>{contents}{}</ListBucketResult>",
        folders.concat()
    )
}
