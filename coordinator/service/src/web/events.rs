//! Server-sent events: the parts of pages that change, rendered once for all watchers.
//!
//! In: a topic, a function that renders its parts, and a notifier of changes. Out: streams of events, each a part with its id. A
//! topic has a task while it has watchers. The task renders on a notification, and every [`TICK`] without one, since ages change with
//! time, but never twice within [`PAUSE`], and one topic at a time. A watcher that joins late or reads slowly gets the last state of every part and skips earlier
//! ones. So nothing is queued, and all watchers share the bytes.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::Markup;
use parking_lot::Mutex;
use prost::bytes::Bytes;
use serde::Serialize;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use training::report::markup::visible;

use super::PageError;
use crate::permits::CallPermits;
use crate::record::JobId;

/// Minimum time between two renderings.
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum time between two renderings.
const TICK: Duration = Duration::from_secs(1);
/// Time without an event after which a comment is sent, to detect a closed connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Maximum number of streams at the same time, of all users and of each.
const WATCHERS: [usize; 2] = [1024, 512];

/// A part of a page: an element by its id, and its content.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Part {
    /// Unique in its page.
    pub id: &'static str,
    /// Content, as escaped HTML.
    pub html: String,
}

impl Part {
    /// The element `id` with `content` in it.
    pub fn new(id: &'static str, content: Markup) -> Part {
        Part { id, html: visible(content) }
    }
}

/// Topic of a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Topic {
    /// A page of the list of jobs.
    Jobs {
        /// Number of the page, from 1.
        page: usize,
    },
    /// A job.
    Job(JobId),
    /// All workers.
    Workers,
}

/// A part, as rendered when it last changed.
struct Drawn {
    part: Part,
    /// Number of that rendering, from 1.
    version: u64,
    event: Bytes,
}

/// All parts of a topic.
type Drawing = Arc<Vec<Arc<Drawn>>>;

type Topics = Arc<Mutex<BTreeMap<Topic, watch::Sender<Drawing>>>>;

/// Streams of all topics.
#[derive(Clone)]
pub struct Events {
    /// Topics with a task.
    topics: Topics,
    places: CallPermits,
    /// One topic is rendered at a time: hundreds of watched topics leave the other threads and cores to requests.
    turn: Arc<Semaphore>,
    pause: Duration,
    tick: Duration,
}

impl Default for Events {
    fn default() -> Events {
        Events {
            topics: Topics::default(),
            places: CallPermits::new(WATCHERS),
            turn: Arc::new(Semaphore::new(1)),
            pause: PAUSE,
            tick: TICK,
        }
    }
}

impl Events {
    /// Streams the parts that `render` returns for `topic` to a user: first all, then changes. The stream ends when `render` returns `None`.
    pub fn watch<F>(
        &self,
        who: &str,
        topic: Topic,
        notifier: watch::Receiver<u64>,
        render: impl Fn() -> F + Send + 'static,
    ) -> Response
    where
        F: Future<Output = Option<Vec<Part>>> + Send + 'static,
    {
        let Some(place) = self.places.try_take(who) else {
            return PageError(
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many watchers at the same time; load the page again later.".into(),
            )
            .into_response();
        };
        let mut drawings = self.subscribe(topic, notifier, render);
        // Events that the browser has not read yet wait here.
        let (events, stream) = mpsc::channel::<Result<Bytes, std::convert::Infallible>>(4);
        tokio::spawn(async move {
            let _place = place;
            let mut seen = 0;
            loop {
                let drawing = drawings.borrow_and_update().clone();
                for drawn in drawing.iter().filter(|drawn| drawn.version > seen) {
                    if events.send(Ok(drawn.event.clone())).await.is_err() {
                        return; // the browser has disconnected
                    }
                }
                seen = drawing.iter().map(|drawn| drawn.version).max().unwrap_or(seen);
                let quiet = tokio::select! {
                    changed = drawings.changed() => match changed {
                        Ok(()) => false,
                        Err(_) => return,
                    },
                    () = tokio::time::sleep(KEEP_ALIVE) => true,
                    () = events.closed() => return,
                };
                if quiet && events.send(Ok(Bytes::from_static(b":\n\n"))).await.is_err() {
                    return;
                }
            }
        });
        let kind = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
        (kind, Body::from_stream(ReceiverStream::new(stream))).into_response()
    }

    /// Subscribes to a topic; starts its task if it has no watcher yet.
    fn subscribe<F>(
        &self,
        topic: Topic,
        notifier: watch::Receiver<u64>,
        render: impl Fn() -> F + Send + 'static,
    ) -> watch::Receiver<Drawing>
    where
        F: Future<Output = Option<Vec<Part>>> + Send + 'static,
    {
        let mut topics = self.topics.lock();
        if let Some(drawings) = topics.get(&topic) {
            return drawings.subscribe();
        }
        let (drawings, first) = watch::channel(Drawing::default());
        topics.insert(topic, drawings);
        tokio::spawn(draw(self.clone(), topic, notifier, render));
        first
    }
}

/// Renders a topic until it has no watchers, or `render` returns `None`.
async fn draw<F>(
    events: Events,
    topic: Topic,
    mut notifier: watch::Receiver<u64>,
    render: impl Fn() -> F + Send,
) where
    F: Future<Output = Option<Vec<Part>>> + Send + 'static,
{
    let mut version = 0;
    loop {
        notifier.borrow_and_update();
        let parts = {
            let _turn = events.turn.acquire().await; // never closed
            render().await
        };
        version += 1;
        {
            let mut topics = events.topics.lock();
            let drawings = topics.get(&topic).filter(|drawings| drawings.receiver_count() > 0);
            let (Some(parts), Some(drawings)) = (parts, drawings) else {
                topics.remove(&topic);
                return;
            };
            drawings.send_if_modified(|drawing| merge(drawing, parts, version));
        }
        tokio::time::sleep(events.pause).await;
        tokio::select! {
            changed = notifier.changed() => if changed.is_err() { tokio::time::sleep(events.tick).await },
            () = tokio::time::sleep(events.tick.saturating_sub(events.pause)) => {}
        }
    }
}

/// Replaces the parts that changed; returns whether any did.
fn merge(drawing: &mut Drawing, parts: Vec<Part>, version: u64) -> bool {
    let drawn = |part: Part| match drawing.iter().find(|drawn| drawn.part == part) {
        Some(drawn) => drawn.clone(),
        None => {
            let json = serde_json::to_string(&part).expect("text serialises");
            let event = Bytes::from(format!("event: part\ndata: {json}\n\n"));
            Arc::new(Drawn { part, version, event })
        }
    };
    let new: Vec<Arc<Drawn>> = parts.into_iter().map(drawn).collect();
    let changed = new.iter().any(|drawn| drawn.version == version);
    *drawing = Arc::new(new);
    changed
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio_stream::StreamExt as _;

    use super::*;
    use crate::job_log::Notifier;

    fn part(id: &'static str, html: impl ToString) -> Part {
        Part { id, html: html.to_string() }
    }

    #[test]
    fn only_what_changed_is_sent_again() {
        let mut drawing = Drawing::default();
        assert!(merge(&mut drawing, vec![part("a", "<b>\n1</b>"), part("b", 1)], 1));
        assert!(!merge(&mut drawing, vec![part("a", "<b>\n1</b>"), part("b", 1)], 2));
        assert!(merge(&mut drawing, vec![part("a", "<b>\n1</b>"), part("b", 2)], 3));
        let versions: Vec<u64> = drawing.iter().map(|drawn| drawn.version).collect();
        assert_eq!(versions, [1, 3]);
        let event = std::str::from_utf8(&drawing[0].event).unwrap();
        assert_eq!(event, "event: part\ndata: {\"id\":\"a\",\"html\":\"<b>\\n1</b>\"}\n\n");
    }

    /// Two hundred watchers and a thousand notifications: all watchers see the last state, which was rendered a few times.
    #[test]
    fn a_change_is_rendered_once_for_all_watchers() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let events = Events {
                pause: Duration::from_millis(40),
                tick: Duration::from_secs(3600),
                ..Events::default()
            };
            let (notifier, state, drawn) =
                (Notifier::default(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let streams: Vec<Body> = (0..200)
                .map(|_| {
                    let (state, drawn) = (state.clone(), drawn.clone());
                    let render = move || {
                        drawn.fetch_add(1, Ordering::SeqCst);
                        let now = state.load(Ordering::SeqCst);
                        async move { Some(vec![part("fixed", "same"), part("round", now)]) }
                    };
                    events.watch("ann", Topic::Workers, notifier.listen(), render).into_body()
                })
                .collect();
            let rings = async {
                for now in 1..=1000 {
                    state.store(now, Ordering::SeqCst);
                    notifier.ring();
                    tokio::task::yield_now().await;
                }
            };
            let read = async |body: Body| {
                let (mut stream, mut got) = (body.into_data_stream(), Vec::new());
                while !got.iter().any(|event: &String| event.contains("\"1000\"")) {
                    got.push(String::from_utf8(stream.next().await.unwrap().unwrap().to_vec()).unwrap());
                }
                got
            };
            let all = async {
                let mut all = Vec::new();
                for body in streams {
                    all.push(read(body).await);
                }
                all
            };
            let (all, ()) = tokio::join!(all, rings);
            for got in all {
                assert_eq!(got.iter().filter(|event| event.contains("fixed")).count(), 1, "{got:?}");
            }
            assert!(drawn.load(Ordering::SeqCst) < 50, "{drawn:?}");
            // Without watchers the next rendering is the topic's last.
            while !events.topics.lock().is_empty() {
                notifier.ring();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(events.places.n_free(), WATCHERS[0]);
        });
    }
}
