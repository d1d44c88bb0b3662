//! A page on which somebody annotates the lines of a result, and sees what is learned from them.
//!
//! ```text
//! GET  /TOKEN/               the page, its style and its script
//! GET  /TOKEN/state          all lines, with their boundaries and probabilities, and which are suggested
//! POST /TOKEN/annotations    a line is annotated, or no longer: the file is written before the answer
//! POST /TOKEN/learned        a field learns from the file; answers with the new state
//! GET  /TOKEN/segmented.txt  the text as it is segmented now
//! ```
//!
//! Invariants: the page is on loopback only. A request without the random token of the address is refused, and so is one that names another host or comes from another page.
//! All that was said is in the file of annotations, which is read anew for every request: the server may be killed at any time, the file edited, and two
//! pages be open. Of two changes of a line the last one counts; the answer to a page that did not know the version of the file says so. `maud` and the script
//! escape all text of lines.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use fleet::access::secret;
use maud::{DOCTYPE, html};
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use training::annotation_file::AnnotationFile;
use training::relearn::relearn;
use training::report::STYLE;
use training::segmented::Segmented;
use training::suggest::suggest;

use crate::web;

/// Number of suggested lines.
const SUGGESTED: usize = 50;

/// A page that does not serve yet.
pub struct Page {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
    app: App,
}

/// State that all handlers share.
#[derive(Clone)]
struct App(Arc<Shared>);

struct Shared {
    title: String,
    file: PathBuf,
    /// The text as it is segmented now.
    text: RwLock<Segmented>,
    /// Held while the file is changed.
    writing: Mutex<()>,
    /// Held while a field learns.
    learning: Mutex<()>,
}

impl Page {
    /// Reads the result in the folder `results` and the annotations in `file`, learns from them if there are some, and binds `port` on loopback; 0 chooses a free one.
    pub async fn open(results: &Path, file: &Path, port: u16) -> Result<Page> {
        let mut text = Segmented::read(results)?;
        let annotations = AnnotationFile::read(file, &text)?.annotations;
        if !annotations.is_empty() {
            relearn(&mut text, &annotations);
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| {
            format!("{address}: cannot serve a page there; choose another port with --port")
        })?;
        let (address, token) = (listener.local_addr()?, secret()?);
        let shared = Shared {
            title: results.display().to_string(),
            file: file.to_owned(),
            text: RwLock::new(text),
            writing: Mutex::new(()),
            learning: Mutex::new(()),
        };
        Ok(Page { listener, address, token, app: App(Arc::new(shared)) })
    }

    /// The address to open in a browser, with the token.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token)
    }

    /// Serves until it is dropped.
    pub async fn serve(self) -> Result<()> {
        let Page { listener, token, app, .. } = self;
        let at = |name: &str| format!("/{token}/{name}");
        let routes = Router::new()
            .route(&at(""), get(page))
            .route(&at("style.css"), get(style))
            .route(&at("annotate.js"), get(script))
            .route(&at("state"), get(state))
            .route(&at("annotations"), post(annotate))
            .route(&at("learned"), post(learn))
            .route(&at("segmented.txt"), get(segmented))
            .with_state(app);
        let token: Arc<str> = token.into();
        let routes =
            routes.layer(middleware::from_fn(move |request, next| guard(token.clone(), request, next)));
        let routes = web::headers().into_iter().fold(routes, Router::layer);
        axum::serve(listener, routes).await.context("the page is no longer served")
    }
}

/// Passes a request on, or refuses it.
async fn guard(token: Arc<str>, request: Request, next: Next) -> Response {
    let shown = request.uri().path().split('/').nth(1).unwrap_or_default();
    if !web::names_this_machine(request.headers()) {
        return (StatusCode::MISDIRECTED_REQUEST, "this page answers requests to this machine only\n")
            .into_response();
    }
    if shown != &*token {
        let words = "open the whole address that grammaton annotate prints, with its token\n";
        return (StatusCode::FORBIDDEN, words).into_response();
    }
    if request.method() == "POST" && !web::is_ours(request.headers()) {
        return (StatusCode::FORBIDDEN, "this was not sent from this page\n").into_response();
    }
    next.run(request).await
}

/// A distinct line of the text.
#[derive(Serialize)]
struct Line<'a> {
    symbols: Vec<&'a str>,
    /// Of a boundary after each symbol but the last, in percent; empty if the line was not trained on.
    probabilities: Vec<u8>,
    ends: &'a [u32],
    /// Number of its occurrences.
    times: u32,
    annotated: bool,
}

/// What the page shows.
#[derive(Serialize)]
struct View<'a> {
    version: String,
    /// Separators of symbols and of segments.
    separators: (&'static str, &'static str),
    lines: Vec<Line<'a>>,
    /// Numbers of lines whose annotation would teach most.
    suggested: Vec<usize>,
}

/// Positions in the corpus of the first occurrence of each distinct sentence.
fn distinct(text: &Segmented) -> Vec<usize> {
    (0..text.corpus.sentences.len())
        .filter(|&at| text.first(&text.corpus.sentences[at]) == Some(at))
        .collect()
}

/// The state as JSON.
fn view(text: &Segmented, file: &AnnotationFile) -> Result<Vec<u8>> {
    let distinct = distinct(text);
    let numbers: BTreeMap<usize, usize> = distinct.iter().copied().zip(0..).collect();
    let number = |symbols: &[u32]| text.first(symbols).map(|at| numbers[&at]);
    let gold = text.corpus.gold.as_deref().unwrap_or_default();
    let line = |&at: &usize| {
        let symbols = &text.corpus.sentences[at];
        let said = file.annotations.get(symbols);
        let printed = gold.get(at).and_then(|analyses| analyses.first());
        Line {
            symbols: symbols.iter().map(|&symbol| text.corpus.symbols[symbol as usize].as_str()).collect(),
            probabilities: Vec::new(),
            ends: said.or(printed).map(Vec::as_slice).unwrap_or_default(),
            times: 0,
            annotated: said.is_some(),
        }
    };
    let mut lines: Vec<Line<'_>> = distinct.iter().map(line).collect();
    for symbols in &text.corpus.sentences {
        number(symbols).into_iter().for_each(|at| lines[at].times += 1);
    }
    let percent = |probability: &f64| (probability * 100.0).round() as u8;
    for sentence in text.sentences.iter().rev() {
        let number = number(text.symbols(sentence));
        let percents = || sentence.probabilities.iter().map(percent).collect();
        number.into_iter().for_each(|at| lines[at].probabilities = percents());
    }
    let suggested = suggest(text, SUGGESTED).into_iter();
    let suggested = suggested.filter_map(|at| number(text.symbols(&text.sentences[at]))).collect();
    let separators = text.options.effective_unit().separators();
    Ok(serde_json::to_vec(&View { version: file.version(), separators, lines, suggested })?)
}

/// An error of a handler, as one line.
struct Failed(StatusCode, String);

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Failed {
        Failed(StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}"))
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

impl App {
    /// Runs `work` on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Failed> {
        let shared = self.0.clone();
        let done = tokio::task::spawn_blocking(move || work(&shared)).await;
        done.map_err(|error| Failed(StatusCode::INTERNAL_SERVER_ERROR, format!("internal error: {error}")))?
    }
}

const JSON: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

async fn state(State(app): State<App>) -> Result<Response, Failed> {
    let json = app.blocking(|shared| {
        let text = shared.text.read();
        Ok(view(&text, &AnnotationFile::read(&shared.file, &text)?)?)
    });
    Ok((JSON, json.await?).into_response())
}

/// A change of a line.
#[derive(Deserialize)]
struct Said {
    /// Number of the line.
    line: usize,
    /// Ends of its segments; `None` if it is no longer annotated.
    ends: Option<Vec<u32>>,
    /// Version of the file that the page knows.
    version: String,
}

/// The answer to a change.
#[derive(Serialize)]
struct Kept {
    version: String,
    /// Whether the page did not know what the file had.
    stale: bool,
}

async fn annotate(State(app): State<App>, body: Bytes) -> Result<Response, Failed> {
    let json = app.blocking(move |shared| {
        let said: Said = serde_json::from_slice(&body).map_err(|error| {
            Failed(StatusCode::BAD_REQUEST, format!("expected a change of a line: {error}"))
        })?;
        let text = shared.text.read();
        let _writing = shared.writing.lock();
        let bad = |words: &str| Failed(StatusCode::BAD_REQUEST, words.to_owned());
        let at = *distinct(&text).get(said.line).ok_or_else(|| bad("there is no such line"))?;
        let symbols = text.corpus.sentences[at].clone();
        let mut file = AnnotationFile::read(&shared.file, &text)?;
        let stale = file.version() != said.version;
        match said.ends {
            Some(ends) => {
                let ascend = ends.is_sorted_by(|a, b| a < b) && ends.first().is_some_and(|&first| first > 0);
                if !ascend || ends.last().map(|&last| last as usize) != Some(symbols.len()) {
                    return Err(bad("ends of segments ascend from 1 to the length of the line"));
                }
                file.annotations.insert(symbols, ends);
            }
            None => drop(file.annotations.remove(&symbols)),
        }
        file.write(&shared.file, &text)?;
        Ok(serde_json::to_vec(&Kept { version: file.version(), stale }).map_err(anyhow::Error::from)?)
    });
    Ok((JSON, json.await?).into_response())
}

async fn learn(State(app): State<App>) -> Result<Response, Failed> {
    let json = app.blocking(|shared| {
        let _learning = shared.learning.lock();
        let mut text = shared.text.read().clone();
        let file = AnnotationFile::read(&shared.file, &text)?;
        if file.annotations.is_empty() {
            let words = "no line is annotated yet; say of one that it is right";
            return Err(Failed(StatusCode::CONFLICT, words.to_owned()));
        }
        relearn(&mut text, &file.annotations);
        let json = view(&text, &AnnotationFile::read(&shared.file, &text)?)?;
        *shared.text.write() = text;
        Ok(json)
    });
    Ok((JSON, json.await?).into_response())
}

async fn segmented(State(app): State<App>) -> Response {
    let lines = app.0.text.read().lines();
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"segmented.txt\""),
    ];
    (headers, lines).into_response()
}

async fn style() -> Response {
    let sheet = format!("{STYLE}{}", include_str!("annotate/style.css"));
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], sheet).into_response()
}

async fn script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("annotate/annotate.js"))
        .into_response()
}

async fn page(State(app): State<App>) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Annotate · Grammaton" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href="style.css";
                script src="annotate.js" defer {}
            }
            body {
                main {
                    h1 { "Annotate " (app.0.title) }
                    p.quiet { "Annotations are in " code { (app.0.file.display()) } ", written at each change." }
                    div.controls {
                        button #learn { "Learn again" }
                        button #undo disabled { "Undo" }
                        a.button href="segmented.txt" download { "Save the segmentation" }
                        span #status role="status" aria-live="polite" { "Loading…" }
                    }
                    div #news hidden {}
                    div.columns {
                        section aria-labelledby="shown" {
                            h2 #shown { "Suggested lines" }
                            div.controls #views {
                                button data-view="suggested" { "Suggested" }
                                button data-view="annotated" { "Annotated" }
                                button data-view="all" { "All lines" }
                            }
                            ol #lines {}
                            button #more hidden { "More lines" }
                            p.quiet {
                                "Shaded: how probable a boundary is. Keys: ← → go from gap to gap, space or enter makes or takes away a boundary, n and p go to the next line and back, r says that a line is right, u undoes."
                            }
                        }
                        section aria-labelledby="words-title" {
                            h2 #words-title { "Words" }
                            input #search type="search" placeholder="Find a word" aria-label="Find a word";
                            ol #words {}
                        }
                    }
                }
            }
        }
    };
    Html(page.into_string())
}
