//! The page of `grammaton annotate`, on which somebody annotates the lines of a result on this machine.
//!
//! Invariants: the page is on loopback only. A request without the random token of the address is refused, and so is one that names another host or
//! comes from another page. What it does is that of [`annotation`](crate::annotation).

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use basics::atomic_write;
use fleet::access::secret;
use maud::html;
use tokio::net::TcpListener;
use training::segmented::Segmented;

use crate::annotation::page;
use crate::annotation::session::{Failed, Place, Session, Stored};
use crate::web;

/// A page that does not serve yet.
pub struct Page {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
    app: App,
}

/// State that all handlers share.
#[derive(Clone)]
struct App {
    title: Arc<str>,
    file: Arc<Path>,
    session: Arc<Session>,
}

/// A file that others may edit.
struct LocalFile(PathBuf);

impl Place for LocalFile {
    fn name(&self) -> String {
        self.0.display().to_string()
    }

    fn read(&self) -> Result<Stored, Failed> {
        match fs::read(&self.0) {
            Ok(bytes) => Ok(Stored { bytes, version: None }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Stored::default()),
            Err(error) => {
                Err(anyhow!(error).context(format!("{}: cannot read the annotations", self.name())).into())
            }
        }
    }

    fn write(&self, bytes: &[u8], _: &Stored) -> Result<(), Failed> {
        let written = || -> std::io::Result<()> {
            let mut file = atomic_write::create(&self.0)?;
            file.write_all(bytes)?;
            atomic_write::commit(file, &self.0)
        };
        Ok(written().with_context(|| format!("{}: cannot write the annotations", self.name()))?)
    }
}

impl Page {
    /// Reads the result in the folder `results` and the annotations in `file`, learns from them if there are some, and binds `port` on loopback; 0 chooses a free one.
    pub async fn open(results: &Path, file: &Path, port: u16) -> Result<Page> {
        let place = LocalFile(file.to_owned());
        let session = Session::open(Segmented::read(results)?, place, Arc::default());
        let session = session.map_err(|Failed(_, words)| anyhow!(words))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| {
            format!("{address}: cannot serve a page there; choose another port with --port")
        })?;
        let (address, token) = (listener.local_addr()?, secret()?);
        let app = App {
            title: results.display().to_string().into(),
            file: file.into(),
            session: Arc::new(session),
        };
        Ok(Page { listener, address, token, app })
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
            .route(&at(""), get(whole))
            .route(&at("style.css"), get(page::style))
            .route(&at("annotate.js"), get(page::script))
            .route(&at("state"), get(state))
            .route(&at("annotations"), post(say))
            .route(&at("learned"), post(learn))
            .route(&at("segmented.txt"), get(segmented))
            .route(&at("annotated.txt"), get(annotated))
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

impl App {
    /// Runs `work` on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Session) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Failed> {
        let session = self.session.clone();
        let done = tokio::task::spawn_blocking(move || work(&session)).await;
        done.map_err(|error| Failed(StatusCode::INTERNAL_SERVER_ERROR, format!("internal error: {error}")))?
    }
}

async fn whole(State(app): State<App>) -> Response {
    let about = html! { "Annotations are in " code { (app.file.display()) } ", written at each change." };
    page::Page { title: &app.title, about, refusal: None }.html().into_response()
}

async fn state(State(app): State<App>) -> Response {
    page::json(app.blocking(Session::state).await)
}

async fn say(State(app): State<App>, body: Bytes) -> Response {
    page::json(app.blocking(move |session| session.say(&body)).await)
}

async fn learn(State(app): State<App>) -> Response {
    let turn = app.session.turn().await;
    let learned = app.blocking(move |session| {
        let _turn = turn;
        session.learn()
    });
    page::json(learned.await)
}

async fn segmented(State(app): State<App>) -> Response {
    page::saved(app.blocking(|session| Ok(session.segmented().into_bytes())).await, "segmented.txt")
}

async fn annotated(State(app): State<App>) -> Response {
    page::saved(app.blocking(Session::annotated).await, "annotated.txt")
}
