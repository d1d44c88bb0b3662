//! The web page of a service: jobs, a job, and workers.
//!
//! ```text
//! connection ──> auth ──> page      parts, rendered for this request
//!    (limits)     │ ├───> events    the same parts, rendered once for all watchers when they change
//!                 │ ├───> action    cancel, resume, delete: posted by a form of this page
//!                 │ └───> annotate  lines of a finished job, and what is learned from them
//!                 └─ roles, and security headers
//! ```
//!
//! A page is a list of `events::Part`s, and `live.js` replaces a part when it changes. So a loaded page and a watched one show the same,
//! and without script a reload does. `report.html` and the page share their charts.
//!
//! Invariants: `maud` escapes all values from jobs, workers and files, by type. GET changes nothing. Nothing is loaded from other
//! origins. A change is rendered once, for any number of watchers. The server runs on a separate thread until it is dropped.

mod annotate;
mod auth;
mod connections;
mod events;
mod exposition;
mod files;
mod frame;
mod job;
mod jobs;
mod metrics;
pub mod probes;
mod sessions;
mod utc;
mod workers;

#[cfg(test)]
mod tests;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use axum::extract::rejection::{FormRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Form, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router, middleware};
use fleet::access::{Access, Identity};
use fleet::connection_limits::ConnectionSlot;
use fleet::{FleetStatus, Watcher};
use maud::html;
use rustls::ServerConfig;
use serde::Deserialize;
use tokio::sync::oneshot;
use training::report::STYLE;
use training::report::markup::bar_lengths;

use crate::annotation;
use crate::permits::CallPermits;
use crate::queue::Refusal;
use crate::record::{JobId, View};
use crate::{Problem, Service};

pub(crate) use self::auth::{headers, is_ours, names_this_machine};

use self::auth::Auth;
use self::events::{Events, Part, Topic};
use self::frame::{Frame, Tab};

/// Maximum size of a form, in bytes.
const FORM: usize = 4 << 10;
/// Downloads at the same time, of all users and of each; others wait.
const DOWNLOADS: [usize; 2] = [16, 8];
/// Changes of jobs at the same time, of all users and of each, which storage may keep waiting; others wait for them.
const CHANGES: [usize; 2] = [8, 4];
/// Threads that may block: downloads, changes and learning hold one each, and some are left for pages.
const THREADS: usize = DOWNLOADS[0] + CHANGES[0] + annotate::LEARNING[0] + 16;

/// A bound address that does not serve yet.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    /// Whether the address is on loopback.
    is_local: bool,
}

/// Serves until dropped.
pub struct Page {
    /// Ends the thread when it is dropped.
    _running: oneshot::Sender<()>,
}

impl Bound {
    /// Binds `address`; port 0 chooses a free port. Without tokens, the address must be on loopback, unless `insecure` is set.
    pub fn at(address: SocketAddr, access: &Access, insecure: bool) -> Result<Bound> {
        let is_local = address.ip().is_loopback();
        ensure!(
            is_local || insecure || access.is_guarded(),
            "{address}: refusing to serve pages beyond loopback without a token; give tokens (--tokens, --token-file), or say --insecure"
        );
        let refused = || format!("{address}: cannot serve pages there; choose another address with --http");
        let listener = TcpListener::bind(address).with_context(refused)?;
        listener.set_nonblocking(true).with_context(refused)?;
        let address = listener.local_addr().with_context(refused)?;
        Ok(Bound { listener, address, is_local })
    }

    /// The bound address, with the chosen port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the page of `service` with the tokens of `access`, over TLS if `tls` is given.
    pub fn serve(self, service: Service, access: Access, tls: Option<Arc<ServerConfig>>) -> Result<Page> {
        let auth = Auth::new(access, tls.is_some(), self.is_local);
        let app = App::new(service, auth);
        let (running, ended) = oneshot::channel::<()>();
        let runtime =
            tokio::runtime::Builder::new_current_thread().max_blocking_threads(THREADS).enable_all().build();
        let runtime = runtime.context("cannot start a runtime for pages")?;
        let listener = self.listener;
        let body = move || {
            runtime.block_on(async {
                let served = async {
                    let listener = tokio::net::TcpListener::from_std(listener)?;
                    connections::serve(listener, tls, routes(app)).await
                };
                tokio::select! {
                    Err(error) = served => tracing::error!(%error, "pages are no longer served"),
                    _ = ended => {}
                }
            });
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("page".into()).spawn(body);
        thread.context("cannot start a thread for pages")?;
        Ok(Page { _running: running })
    }
}

/// State that all handlers share.
#[derive(Clone)]
struct App {
    service: Service,
    watcher: Watcher,
    auth: Arc<Auth>,
    events: Events,
    downloads: CallPermits,
    changes: CallPermits,
    annotated: annotate::Sessions,
}

impl App {
    fn new(service: Service, auth: Auth) -> App {
        let (downloads, changes) = (CallPermits::new(DOWNLOADS), CallPermits::new(CHANGES));
        let watcher = service.watcher();
        let (auth, events, annotated) = (Arc::new(auth), Events::default(), annotate::Sessions::default());
        App { service, watcher, auth, events, downloads, changes, annotated }
    }

    /// Runs `work` on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Service) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, PageError> {
        let service = self.service.clone();
        let done = tokio::task::spawn_blocking(move || work(&service)).await;
        done.map_err(|_| PageError::internal())?.map_err(PageError::from)
    }

    /// Answers a request with the result of a user's change, which waits for storage.
    async fn change(
        &self,
        who: Identity,
        work: impl FnOnce(&Service, &Identity) -> Result<View, Problem> + Send + 'static,
    ) -> Result<View, PageError> {
        let place = self.changes.take(&who.name).await.ok_or_else(PageError::busy)?;
        self.blocking(move |service| {
            let _place = place;
            work(service, &who)
        })
        .await
    }

    /// Status of the fleet; an error when the service is ending.
    async fn fleet(&self) -> Result<FleetStatus, PageError> {
        let ending = || PageError(StatusCode::SERVICE_UNAVAILABLE, "the service is about to end".into());
        self.watcher.status().await.ok_or_else(ending)
    }

    /// Renders the parts of a page.
    async fn parts(&self, topic: Topic) -> Result<Vec<Part>, PageError> {
        let fleet = self.fleet().await?;
        self.blocking(move |service| match topic {
            Topic::Jobs { page } => jobs::parts(service, &fleet, page),
            Topic::Job(id) => job::parts(service, id, &fleet),
            Topic::Workers => Ok(workers::parts(&fleet)),
        })
        .await
    }

    /// Streams the parts of a page and their changes.
    fn watch(&self, who: &Identity, topic: Topic) -> Response {
        let app = self.clone();
        let render = move || {
            let app = app.clone();
            async move { app.parts(topic).await.ok() }
        };
        self.events.watch(&who.name, topic, self.service.notifier().listen(), render)
    }
}

/// An error page: status code and message.
struct PageError(StatusCode, String);

impl PageError {
    /// A thread that has panicked.
    fn internal() -> PageError {
        PageError(StatusCode::INTERNAL_SERVER_ERROR, "internal error; the service's log says more".into())
    }

    /// Too many requests of the user wait.
    fn busy() -> PageError {
        PageError(
            StatusCode::TOO_MANY_REQUESTS,
            "Too many requests at the same time; try again later.".into(),
        )
    }
}

impl From<Problem> for PageError {
    fn from(problem: Problem) -> PageError {
        let code = match &problem {
            Problem::Denied(_) => StatusCode::FORBIDDEN,
            Problem::Refused(Refusal::Unknown(_)) => StatusCode::NOT_FOUND,
            Problem::Refused(Refusal::Full(_) | Refusal::UserFull(_)) | Problem::Quota(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Problem::Refused(_) => StatusCode::CONFLICT,
            Problem::Lacking { .. } | Problem::Invalid(_) => StatusCode::BAD_REQUEST,
            Problem::Failed(error) => {
                tracing::error!("{error:#}");
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        PageError(code, problem.to_string())
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let PageError(code, words) = self;
        let title = code.canonical_reason().unwrap_or("Error");
        let body = html! {
            h1 { (title) }
            p { (words) }
            p { a href="/" { "All jobs" } }
        };
        let frame = Frame { title, tab: Tab::None, events: None, who: None, body };
        (code, frame.html()).into_response()
    }
}

fn missing() -> PageError {
    PageError(StatusCode::NOT_FOUND, "This page does not exist.".into())
}

fn routes(app: App) -> Router {
    let routes = Router::new()
        .route("/", get(all_jobs))
        .route("/events", get(all_jobs_events))
        .route("/jobs/{id}", get(one_job))
        .route("/jobs/{id}/events", get(one_job_events))
        .route("/jobs/{id}/cancel", post(cancel))
        .route("/jobs/{id}/resume", post(resume))
        .route("/jobs/{id}/delete", post(delete))
        .route("/jobs/{id}/files/{*path}", get(file))
        .route("/jobs/{id}/results.tar.gz", get(archive))
        .route("/jobs/{id}/annotate/", get(annotate::whole))
        .route("/jobs/{id}/annotate/style.css", get(annotation::page::style))
        .route("/jobs/{id}/annotate/annotate.js", get(annotation::page::script))
        .route("/jobs/{id}/annotate/state", get(annotate::state))
        .route(
            "/jobs/{id}/annotate/annotations",
            post(annotate::say).layer(DefaultBodyLimit::max(annotate::CHANGE)),
        )
        .route("/jobs/{id}/annotate/learned", post(annotate::learn))
        .route("/jobs/{id}/annotate/segmented.txt", get(annotate::segmented))
        .route("/jobs/{id}/annotate/annotated.txt", get(annotate::annotated))
        .route("/workers", get(all_workers))
        .route("/workers/events", get(all_workers_events))
        .route("/login", get(login).post(log_in))
        .route("/logout", post(log_out))
        .route("/metrics", get(metrics::page))
        .route("/health", get(health))
        .route("/style.css", get(style))
        .route("/live.js", get(live))
        .fallback(async || missing())
        .layer(middleware::from_fn_with_state(app.clone(), auth::guard))
        .layer(DefaultBodyLimit::max(FORM))
        .with_state(app);
    auth::headers().into_iter().fold(routes, Router::layer)
}

/// Query with the number of a page, from 1.
#[derive(Deserialize)]
struct Paged {
    page: usize,
}

type Pages = Result<Query<Paged>, QueryRejection>;

fn number_of(paged: Pages) -> usize {
    paged.map_or(1, |Query(paged)| paged.page.max(1))
}

async fn all_jobs(
    State(app): State<App>,
    Extension(who): Extension<Identity>,
    paged: Pages,
) -> Result<Response, PageError> {
    let page = number_of(paged);
    let parts = app.parts(Topic::Jobs { page }).await?;
    let events = if page == 1 { "/events".to_owned() } else { format!("/events?page={page}") };
    let body = html! { h1 { "Jobs" } (frame::render_parts(&parts)) };
    let (events, who) = (Some(&events[..]), app.auth.shown(&who));
    Ok(Frame { title: "Jobs", tab: Tab::Jobs, events, who, body }.respond())
}

async fn all_jobs_events(
    State(app): State<App>,
    Extension(who): Extension<Identity>,
    paged: Pages,
) -> Response {
    app.watch(&who, Topic::Jobs { page: number_of(paged) })
}

/// Path parameter with the id of a job.
type Id = Result<Path<String>, PathRejection>;

fn id(path: Id) -> Result<JobId, PageError> {
    path.map_err(|_| missing())?.parse().map_err(|_| missing())
}

async fn one_job(
    State(app): State<App>,
    Extension(who): Extension<Identity>,
    path: Id,
) -> Result<Response, PageError> {
    let id = id(path)?;
    let parts = app.parts(Topic::Job(id)).await?;
    let record = app.blocking(move |service| service.job(id)).await?.record;
    let events = format!("/jobs/{id}/events");
    let (title, body) = (format!("{} · job {id}", record.name), frame::render_parts(&parts));
    let who = app.auth.shown(&who);
    Ok(Frame { title: &title, tab: Tab::None, events: Some(&events), who, body }.respond())
}

async fn one_job_events(
    State(app): State<App>,
    Extension(who): Extension<Identity>,
    path: Id,
) -> Result<Response, PageError> {
    let id = id(path)?;
    app.blocking(move |service| service.job(id)).await?;
    Ok(app.watch(&who, Topic::Job(id)))
}

async fn cancel(
    State(app): State<App>,
    Extension(who): Extension<Identity>,
    path: Id,
) -> Result<Redirect, PageError> {
    let id = id(path)?;
    app.change(who, move |service, who| service.cancel(who, id)).await?;
    Ok(Redirect::to(&format!("/jobs/{id}")))
}

async fn resume(
    State(app): State<App>,
    Extension(who): Extension<Identity>,
    path: Id,
) -> Result<Redirect, PageError> {
    let id = id(path)?;
    app.change(who, move |service, who| service.resume(who, id)).await?;
    Ok(Redirect::to(&format!("/jobs/{id}")))
}

async fn delete(
    State(app): State<App>,
    Extension(who): Extension<Identity>,
    path: Id,
) -> Result<Redirect, PageError> {
    let id = id(path)?;
    app.change(who, move |service, who| service.delete(who, id)).await?;
    Ok(Redirect::to("/"))
}

async fn file(
    State(app): State<App>,
    Extension(who): Extension<Identity>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, PageError> {
    let Path((job, path)) = path.map_err(|_| missing())?;
    let job: JobId = job.parse().map_err(|_| missing())?;
    files::send(&app, &who, job, path).await
}

async fn archive(
    State(app): State<App>,
    Extension(who): Extension<Identity>,
    path: Id,
) -> Result<Response, PageError> {
    files::send_archive(&app, &who, id(path)?).await
}

async fn all_workers(
    State(app): State<App>,
    Extension(who): Extension<Identity>,
) -> Result<Response, PageError> {
    let parts = app.parts(Topic::Workers).await?;
    let body = html! { h1 { "Workers" } (frame::render_parts(&parts)) };
    let (events, who) = (Some("/workers/events"), app.auth.shown(&who));
    Ok(Frame { title: "Workers", tab: Tab::Workers, events, who, body }.respond())
}

async fn all_workers_events(State(app): State<App>, Extension(who): Extension<Identity>) -> Response {
    app.watch(&who, Topic::Workers)
}

async fn login(uri: Uri) -> Response {
    frame::login(uri.query() == Some("again"))
}

#[derive(Deserialize)]
struct Login {
    token: String,
}

async fn log_in(
    State(app): State<App>,
    Extension(peer): Extension<SocketAddr>,
    Extension(place): Extension<Arc<ConnectionSlot>>,
    form: Result<Form<Login>, FormRejection>,
) -> Response {
    match form {
        Ok(Form(Login { token })) => app.auth.log_in(&app.service, peer, &place, token.trim()).await,
        Err(_) => PageError(StatusCode::BAD_REQUEST, "expected a form with a token".into()).into_response(),
    }
}

async fn log_out(State(app): State<App>, headers: HeaderMap) -> Response {
    app.auth.log_out(&headers)
}

async fn health(State(app): State<App>) -> Result<&'static str, PageError> {
    app.fleet().await.map(|_| "ok\n")
}

/// Cache header of files that change only with the program.
const CACHED: (header::HeaderName, &str) = (header::CACHE_CONTROL, "max-age=300");

async fn style() -> Response {
    let sheet = format!("{STYLE}{}{}", bar_lengths(), include_str!("web/style.css"));
    ([CACHED, (header::CONTENT_TYPE, "text/css; charset=utf-8")], sheet).into_response()
}

async fn live() -> Response {
    ([CACHED, (header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("web/live.js"))
        .into_response()
}
