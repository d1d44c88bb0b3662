//! The page on which lines of a finished job are annotated.
//!
//! ```text
//! request ──> rights of the job ──> open session ──> annotation::session
//!                                    (a few; others are opened again)
//! ```
//!
//! Invariants: reading takes the rights and the permits of reading results, changing those of cancelling the job. At most [`SESSIONS`] results are in memory. To read one and to learn takes
//! a permit, and is done on a thread that may block; a request that waits for it is answered after [`PATIENCE`] by 202, and the page asks again. One field at a time
//! learns for a job, and the work of a client that is gone goes on, so that it is not begun twice.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use basics::human::visible;
use fleet::access::Identity;
use maud::html;
use parking_lot::Mutex;
use tokio::time::timeout;

use super::{App, Id, PageError, id};
use crate::annotation::page;
use crate::annotation::session::{Failed, Place, Session, Stored};
use crate::permits::CallPermits;
use crate::record::{JobId, View};
use crate::{Problem, Service};

/// Results that are in memory at the same time.
const SESSIONS: usize = 4;
/// Results that are read or learned from at the same time, for all users and for each; others wait.
pub const LEARNING: [usize; 2] = [2, 1];
/// Maximum size of a change of a line, in bytes: a letter for each position of a line.
pub const CHANGE: usize = 64 << 10;
/// Time after which a request is answered whose work goes on.
const PATIENCE: Duration = Duration::from_secs(10);

/// A place for an open result, locked while it is read.
type Slot = Arc<tokio::sync::Mutex<Option<Arc<Session>>>>;

/// Open results, the one used last at the end.
#[derive(Clone)]
pub struct Sessions {
    slots: Arc<Mutex<VecDeque<(JobId, Slot)>>>,
    /// Held while the file of a job is changed, by a session that has left as well.
    writing: Arc<Mutex<BTreeMap<JobId, Weak<Mutex<()>>>>>,
    permits: CallPermits,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions { slots: Arc::default(), writing: Arc::default(), permits: CallPermits::new(LEARNING) }
    }
}

impl Sessions {
    /// The place of a job, which is now the last that leaves.
    fn slot(&self, id: JobId) -> Slot {
        let mut slots = self.slots.lock();
        let known = slots.iter().position(|(other, _)| *other == id).and_then(|at| slots.remove(at));
        let slot = known.map(|(_, slot)| slot).unwrap_or_default();
        slots.push_back((id, slot.clone()));
        while slots.len() > SESSIONS {
            slots.pop_front();
        }
        slot
    }

    /// What is held while the file of a job is changed.
    fn writing(&self, id: JobId) -> Arc<Mutex<()>> {
        let mut all = self.writing.lock();
        all.retain(|_, writing| writing.strong_count() > 0);
        let known = all.get(&id).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let writing = Arc::default();
            all.insert(id, Arc::downgrade(&writing));
            writing
        })
    }

    /// Leaves out a job, which is gone.
    fn forget(&self, id: JobId) {
        self.slots.lock().retain(|(other, _)| *other != id);
    }
}

/// The file of annotations of a job.
struct OfJob {
    service: Service,
    id: JobId,
}

impl Place for OfJob {
    fn name(&self) -> String {
        format!("annotated.txt of job {}", self.id)
    }

    fn read(&self) -> Result<Stored, Failed> {
        let (bytes, version) = self.service.annotations(self.id)?;
        Ok(Stored { bytes, version })
    }

    fn write(&self, bytes: &[u8], stored: &Stored) -> Result<(), Failed> {
        Ok(self.service.keep_annotations(self.id, bytes, stored.version.as_ref())?)
    }
}

impl From<PageError> for Failed {
    fn from(PageError(code, words): PageError) -> Failed {
        Failed(code, words)
    }
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Failed {
        PageError::from(problem).into()
    }
}

/// Runs `work` on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Failed::from(PageError::internal()))?
}

impl App {
    /// A job, if its results can be annotated.
    async fn annotatable(&self, id: JobId) -> Result<View, PageError> {
        let found = self.blocking(move |service| service.annotatable(id)).await;
        if found.is_err() {
            self.annotated.forget(id);
        }
        found
    }

    /// The open session of a job, which is opened if need be.
    async fn session(&self, who: &Identity, id: JobId) -> Result<Arc<Session>, Failed> {
        self.annotatable(id).await?;
        let slot = self.annotated.slot(id);
        let opened = async {
            let mut open = slot.lock_owned().await;
            if let Some(session) = &*open {
                return Ok(session.clone());
            }
            let permit = self.annotated.permits.take(&who.name).await.ok_or_else(PageError::busy)?;
            let (service, writing) = (self.service.clone(), self.annotated.writing(id));
            blocking(move || {
                let _permit = permit;
                let segmented = service.segmented(id)?;
                let session = Arc::new(Session::open(segmented, OfJob { service, id }, writing)?);
                *open = Some(session.clone());
                Ok(session)
            })
            .await
        };
        timeout(PATIENCE, opened).await.unwrap_or_else(|_| Err(Failed::at_work()))
    }

    /// Refuses a user who may not do this to the annotations of a job.
    async fn check_annotates(&self, who: &Identity, id: JobId, what: &'static str) -> Result<(), Failed> {
        let view = self.annotatable(id).await?;
        let who = who.clone();
        Ok(self.blocking(move |service| service.check_annotates(&who, &view, what)).await?)
    }
}

/// The page.
pub async fn whole(
    State(app): State<App>,
    Extension(who): Extension<Identity>,
    path: Id,
) -> Result<Response, PageError> {
    let view = app.annotatable(id(path)?).await?;
    let record = &view.record;
    let refusal = (!app.service.may_annotate(&who, &view)).then(|| {
        format!(
            "You may look and save; the lines are annotated by {} and by operators.",
            visible(&record.owner)
        )
    });
    let about = html! {
        "Annotations are kept with " a href={ "/jobs/" (record.id) } { "job " (record.id) }
        ", each one when it is made, and are deleted with it."
    };
    let title = visible(&record.name);
    Ok(page::Page { title: &title, about, refusal: refusal.as_deref() }.html().into_response())
}

/// The state.
pub async fn state(State(app): State<App>, Extension(who): Extension<Identity>, path: Id) -> Response {
    let state = async {
        let session = app.session(&who, id(path)?).await?;
        let place = app.downloads.take(&who.name).await.ok_or_else(PageError::busy)?;
        blocking(move || {
            let _place = place;
            session.state()
        })
        .await
    };
    page::json(state.await)
}

/// A change of a line.
pub async fn say(
    State(app): State<App>,
    Extension(who): Extension<Identity>,
    path: Id,
    body: Bytes,
) -> Response {
    let said = async {
        let id = id(path)?;
        app.check_annotates(&who, id, "annotate").await?;
        let session = app.session(&who, id).await?;
        let place = app.changes.take(&who.name).await.ok_or_else(PageError::busy)?;
        blocking(move || {
            let _place = place;
            session.say(&body)
        })
        .await
    };
    page::json(said.await)
}

/// Learns again.
pub async fn learn(State(app): State<App>, Extension(who): Extension<Identity>, path: Id) -> Response {
    let learned = async {
        let id = id(path)?;
        app.check_annotates(&who, id, "learn from annotations").await?;
        let session = app.session(&who, id).await?;
        let learned = async {
            let turn = session.turn().await;
            let permit = app.annotated.permits.take(&who.name).await.ok_or_else(PageError::busy)?;
            blocking(move || {
                let (_turn, _permit) = (turn, permit);
                session.learn()
            })
            .await
        };
        timeout(PATIENCE, learned).await.unwrap_or_else(|_| Err(Failed::at_work()))
    };
    page::json(learned.await)
}

/// The text as it is segmented now.
pub async fn segmented(State(app): State<App>, Extension(who): Extension<Identity>, path: Id) -> Response {
    let text = async {
        let session = app.session(&who, id(path)?).await?;
        let place = app.downloads.take(&who.name).await.ok_or_else(PageError::busy)?;
        blocking(move || {
            let _place = place;
            Ok(session.segmented().into_bytes())
        })
        .await
    };
    page::saved(text.await, "segmented.txt")
}

/// The file of annotations.
pub async fn annotated(State(app): State<App>, path: Id) -> Response {
    let file = async {
        let id = id(path)?;
        Ok(app.blocking(move |service| Ok(service.annotations(id)?.0)).await?)
    };
    page::saved(file.await, "annotated.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result used longest ago leaves first, and a job has one place.
    #[test]
    fn a_few_results_are_open() {
        let sessions = Sessions::default();
        let first = sessions.slot(JobId(1));
        (2..=SESSIONS as u64).for_each(|id| drop(sessions.slot(JobId(id))));
        assert!(Arc::ptr_eq(&first, &sessions.slot(JobId(1))));
        drop(sessions.slot(JobId(99)));
        assert!(Arc::ptr_eq(&first, &sessions.slot(JobId(1))), "it was used after the second one");
        assert_eq!(sessions.slots.lock().len(), SESSIONS);
        assert!(sessions.slots.lock().iter().all(|(id, _)| *id != JobId(2)));
        let writing = sessions.writing(JobId(1));
        sessions.forget(JobId(1));
        assert!(
            Arc::ptr_eq(&writing, &sessions.writing(JobId(1))),
            "a session that has left may write still"
        );
        assert!(!Arc::ptr_eq(&first, &sessions.slot(JobId(1))));
    }
}
