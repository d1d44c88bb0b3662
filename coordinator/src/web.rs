//! The page of a service, in a browser: its jobs, each of them, and who computes.
//!
//! ```text
//! connection ──> auth ──> page      parts, put together once for who asks
//!    (bounds)     │ ├───> events    the same parts, drawn once for all who watch, as they change
//!                 │ └───> action    cancel, resume, delete: posted by a form of ours
//!                 └─ who may do what, and what a browser may do with the answer
//! ```
//!
//! A page is a list of `events::Part`s, and `live.js` puts a new part in the place of an old one; so a page that is loaded and one that
//! was watched show the same, and all works without script, if one loads again. Curves are those of `report.html`.
//!
//! Invariants: whatever comes from jobs, workers or files is escaped where it is put into a page, by its type (`maud`); nothing
//! is done by GET; nothing is loaded from elsewhere; however many watch, a change is drawn once. Runs on a thread of its own until it is
//! dropped.

mod auth;
mod connections;
mod events;
mod exposition;
mod files;
mod frame;
mod job;
mod jobs;
mod metrics;
mod moment;
pub mod probes;
mod sessions;
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
use maud::html;
use rustls::ServerConfig;
use serde::Deserialize;
use tokio::sync::{Semaphore, oneshot};

use crate::access::{Access, Identity};
use crate::fleet::{FleetStatus, Watcher};
use crate::report::STYLE;
use crate::report::markup::bar_lengths;
use crate::service::queue::Refusal;
use crate::service::record::JobId;
use crate::service::{Problem, Service};

use self::auth::Auth;
use self::events::{Events, Part, Topic};
use self::frame::{Frame, Place};

/// Bytes of a form.
const FORM: usize = 4 << 10;
/// Files that are fetched at a time.
const DOWNLOADS: usize = 64;

/// An address at which nobody is answered yet.
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    /// Whether only this machine reaches it.
    is_local: bool,
}

/// Serves until dropped.
pub struct Page {
    /// Dropped with it, which ends the thread.
    _running: oneshot::Sender<()>,
}

impl Bound {
    /// Takes `address`; port 0 takes any free one. Where no token is asked for, that must be of this machine alone, unless
    /// `insecure` says otherwise.
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

    /// Where that is, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows `service` to those whom `access` lets in, through TLS if there is an identity for it.
    pub fn serve(self, service: Service, access: Access, tls: Option<Arc<ServerConfig>>) -> Result<Page> {
        let auth = Auth::new(access, tls.is_some(), self.is_local);
        let house = House::new(service, auth);
        let (running, ended) = oneshot::channel::<()>();
        let runtime =
            tokio::runtime::Builder::new_current_thread().max_blocking_threads(16).enable_all().build();
        let runtime = runtime.context("cannot start a runtime for pages")?;
        let listener = self.listener;
        let body = move || {
            runtime.block_on(async {
                let served = async {
                    let listener = tokio::net::TcpListener::from_std(listener)?;
                    connections::serve(listener, tls, routes(house)).await
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

/// What pages are made of.
#[derive(Clone)]
struct House {
    service: Service,
    watcher: Watcher,
    auth: Arc<Auth>,
    events: Events,
    downloads: Arc<Semaphore>,
}

impl House {
    fn new(service: Service, auth: Auth) -> House {
        let downloads = Arc::new(Semaphore::new(DOWNLOADS));
        let watcher = service.watcher();
        House { service, watcher, auth: Arc::new(auth), events: Events::default(), downloads }
    }

    /// What `work` gives, on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Service) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Oops> {
        let service = self.service.clone();
        let done = tokio::task::spawn_blocking(move || work(&service)).await;
        done.map_err(|_| {
            Oops(StatusCode::INTERNAL_SERVER_ERROR, "internal error; the service's log says more".into())
        })?
        .map_err(Oops::from)
    }

    /// Who computes; nobody once the service ends.
    async fn fleet(&self) -> Result<FleetStatus, Oops> {
        let ending = || Oops(StatusCode::SERVICE_UNAVAILABLE, "the service is about to end".into());
        self.watcher.status().await.ok_or_else(ending)
    }

    /// The parts of a page, as they are now.
    async fn parts(&self, topic: Topic) -> Result<Vec<Part>, Oops> {
        let fleet = self.fleet().await?;
        self.blocking(move |service| match topic {
            Topic::Jobs { page } => Ok(jobs::parts(service, &fleet, page)),
            Topic::Job(id) => job::parts(service, id, &fleet),
            Topic::Workers => Ok(workers::parts(&fleet)),
        })
        .await
    }

    /// A stream of the parts that change.
    fn watch(&self, topic: Topic) -> Response {
        let house = self.clone();
        let render = move || {
            let house = house.clone();
            async move { house.parts(topic).await.ok() }
        };
        self.events.watch(topic, self.service.notifier().listen(), render)
    }
}

/// Why there is no page, in words.
struct Oops(StatusCode, String);

impl From<Problem> for Oops {
    fn from(problem: Problem) -> Oops {
        let code = match &problem {
            Problem::Denied(_) => StatusCode::FORBIDDEN,
            Problem::Refused(Refusal::Unknown(_)) => StatusCode::NOT_FOUND,
            Problem::Refused(Refusal::Full(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Problem::Refused(_) => StatusCode::CONFLICT,
            Problem::Lacking { .. } | Problem::Invalid(_) => StatusCode::BAD_REQUEST,
            Problem::Failed(error) => {
                tracing::error!("{error:#}");
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        Oops(code, problem.to_string())
    }
}

impl IntoResponse for Oops {
    fn into_response(self) -> Response {
        let Oops(code, words) = self;
        let title = code.canonical_reason().unwrap_or("Error");
        let body = html! {
            h1 { (title) }
            p { (words) }
            p { a href="/" { "All jobs" } }
        };
        let frame = Frame { title, place: Place::Elsewhere, events: None, who: None, body };
        (code, frame.html()).into_response()
    }
}

fn missing() -> Oops {
    Oops(StatusCode::NOT_FOUND, "There is no such page here.".into())
}

fn routes(house: House) -> Router {
    let routes = Router::new()
        .route("/", get(all_jobs))
        .route("/events", get(all_jobs_events))
        .route("/jobs/{id}", get(one_job))
        .route("/jobs/{id}/events", get(one_job_events))
        .route("/jobs/{id}/cancel", post(cancel))
        .route("/jobs/{id}/resume", post(resume))
        .route("/jobs/{id}/delete", post(delete))
        .route("/jobs/{id}/files/{*path}", get(file))
        .route("/workers", get(all_workers))
        .route("/workers/events", get(all_workers_events))
        .route("/login", get(login).post(log_in))
        .route("/logout", post(log_out))
        .route("/metrics", get(metrics::page))
        .route("/health", get(health))
        .route("/style.css", get(style))
        .route("/live.js", get(live))
        .fallback(async || missing())
        .layer(middleware::from_fn_with_state(house.clone(), auth::guard))
        .layer(DefaultBodyLimit::max(FORM))
        .with_state(house);
    auth::headers().into_iter().fold(routes, Router::layer)
}

/// The number of a page, from 1, in a query.
#[derive(Deserialize)]
struct Paged {
    page: usize,
}

type Pages = Result<Query<Paged>, QueryRejection>;

fn number_of(paged: Pages) -> usize {
    paged.map_or(1, |Query(paged)| paged.page.max(1))
}

async fn all_jobs(
    State(house): State<House>,
    Extension(who): Extension<Identity>,
    paged: Pages,
) -> Result<Response, Oops> {
    let page = number_of(paged);
    let parts = house.parts(Topic::Jobs { page }).await?;
    let events = if page == 1 { "/events".to_owned() } else { format!("/events?page={page}") };
    let body = html! { h1 { "Jobs" } (frame::put_together(&parts)) };
    let (events, who) = (Some(&events[..]), house.auth.shown(&who));
    Ok(Frame { title: "Jobs", place: Place::Jobs, events, who, body }.respond())
}

async fn all_jobs_events(State(house): State<House>, paged: Pages) -> Response {
    house.watch(Topic::Jobs { page: number_of(paged) })
}

/// The job of a path.
type Id = Result<Path<String>, PathRejection>;

fn id(path: Id) -> Result<JobId, Oops> {
    path.map_err(|_| missing())?.parse().map_err(|_| missing())
}

async fn one_job(
    State(house): State<House>,
    Extension(who): Extension<Identity>,
    path: Id,
) -> Result<Response, Oops> {
    let id = id(path)?;
    let parts = house.parts(Topic::Job(id)).await?;
    let events = format!("/jobs/{id}/events");
    let (title, body) = (format!("Job {id}"), frame::put_together(&parts));
    let who = house.auth.shown(&who);
    Ok(Frame { title: &title, place: Place::Elsewhere, events: Some(&events), who, body }.respond())
}

async fn one_job_events(State(house): State<House>, path: Id) -> Result<Response, Oops> {
    let id = id(path)?;
    house.blocking(move |service| service.job(id)).await?;
    Ok(house.watch(Topic::Job(id)))
}

async fn cancel(
    State(house): State<House>,
    Extension(who): Extension<Identity>,
    path: Id,
) -> Result<Redirect, Oops> {
    let id = id(path)?;
    house.blocking(move |service| service.cancel(&who, id)).await?;
    Ok(Redirect::to(&format!("/jobs/{id}")))
}

async fn resume(
    State(house): State<House>,
    Extension(who): Extension<Identity>,
    path: Id,
) -> Result<Redirect, Oops> {
    let id = id(path)?;
    house.blocking(move |service| service.resume(&who, id)).await?;
    Ok(Redirect::to(&format!("/jobs/{id}")))
}

async fn delete(
    State(house): State<House>,
    Extension(who): Extension<Identity>,
    path: Id,
) -> Result<Redirect, Oops> {
    let id = id(path)?;
    house.blocking(move |service| service.delete(&who, id)).await?;
    Ok(Redirect::to("/"))
}

async fn file(
    State(house): State<House>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, Oops> {
    let Path((job, path)) = path.map_err(|_| missing())?;
    let job: JobId = job.parse().map_err(|_| missing())?;
    files::send(&house, job, path).await
}

async fn all_workers(
    State(house): State<House>,
    Extension(who): Extension<Identity>,
) -> Result<Response, Oops> {
    let parts = house.parts(Topic::Workers).await?;
    let body = html! { h1 { "Workers" } (frame::put_together(&parts)) };
    let (events, who) = (Some("/workers/events"), house.auth.shown(&who));
    Ok(Frame { title: "Workers", place: Place::Workers, events, who, body }.respond())
}

async fn all_workers_events(State(house): State<House>) -> Response {
    house.watch(Topic::Workers)
}

async fn login(uri: Uri) -> Response {
    frame::login(uri.query() == Some("again"))
}

#[derive(Deserialize)]
struct Login {
    token: String,
}

async fn log_in(
    State(house): State<House>,
    Extension(peer): Extension<SocketAddr>,
    form: Result<Form<Login>, FormRejection>,
) -> Response {
    match form {
        Ok(Form(Login { token })) => house.auth.log_in(&house.service, peer, token.trim()).await,
        Err(_) => Oops(StatusCode::BAD_REQUEST, "expected a form with a token".into()).into_response(),
    }
}

async fn log_out(State(house): State<House>, headers: HeaderMap) -> Response {
    house.auth.log_out(&headers)
}

async fn health(State(house): State<House>) -> Result<&'static str, Oops> {
    house.fleet().await.map(|_| "ok\n")
}

/// How long a browser keeps what changes with the program alone.
const KEPT: (header::HeaderName, &str) = (header::CACHE_CONTROL, "max-age=300");

async fn style() -> Response {
    let sheet = format!("{STYLE}{}{}", bar_lengths(), include_str!("web/style.css"));
    ([KEPT, (header::CONTENT_TYPE, "text/css; charset=utf-8")], sheet).into_response()
}

async fn live() -> Response {
    ([KEPT, (header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("web/live.js"))
        .into_response()
}
