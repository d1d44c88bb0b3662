//! A client of a service, on the connections of the command line.
//!
//! Each call opens a connection, as a command does. Jobs, lines and workers go to Python as the JSON that commands print.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};

use anyhow::{Result, anyhow};
use client::connection::{Jobs, Refused, Way, runtime};
use client::submit::{Wishes, send};
use client::{fetch, logs};
use parking_lot::Mutex;
use proto::tls::{ClientTls, IdentityFiles};
use proto::token::Token;
use proto::v1;
use pyo3::exceptions::{PyPermissionError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;
use tonic::{Code, Status};
use training::job::Job;

use crate::error::exception;
use crate::wait::{LOOK, detached, interruptible};

/// A service at an address.
#[pyclass(frozen, module = "grammaton._lib")]
pub struct Client(Arc<Way>);

#[pymethods]
impl Client {
    /// Checks the address and reads the files of keys; connects at the first call.
    #[new]
    #[pyo3(signature = (url, *, token = None, token_file = None, ca = None, cert = None, key = None))]
    fn new(
        py: Python<'_>,
        url: &str,
        token: Option<&str>,
        token_file: Option<PathBuf>,
        ca: Option<PathBuf>,
        cert: Option<PathBuf>,
        key: Option<PathBuf>,
    ) -> PyResult<Client> {
        if cert.is_some() != key.is_some() || (cert.is_some() && ca.is_none()) {
            return Err(PyValueError::new_err("cert and key go together, and need ca"));
        }
        let way = || -> Result<Way> {
            let identity = match (&cert, &key) {
                (Some(certificate), Some(key)) => Some(IdentityFiles { certificate, key }),
                _ => None,
            };
            let tls = ca.as_deref().map(|ca| ClientTls::read(ca, identity)).transpose()?;
            let token = match token {
                Some(token) => Some(Token::new(token, "token")?),
                None => Token::find(token_file.as_deref())?,
            };
            Way::new(url, tls.as_ref(), token)
        };
        Ok(Client(Arc::new(way().map_err(|error| exception(py, error))?)))
    }

    /// Submits the job in a file, and returns it.
    #[pyo3(signature = (file, *, name = None, priority = None, max_workers = None, idempotency_key = None))]
    fn submit(
        &self,
        py: Python<'_>,
        file: PathBuf,
        name: Option<String>,
        priority: Option<u32>,
        max_workers: Option<u32>,
        idempotency_key: Option<String>,
    ) -> PyResult<String> {
        let wishes = Wishes { name, priority, max_workers, idempotency_key };
        let way = self.0.clone();
        without_lock(py, move || {
            let job = Job::load(&file, &[])?;
            json(&runtime()?.block_on(send(&way, job, &file, wishes))?.0)
        })
    }

    /// All jobs that the token may see.
    fn jobs(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, async |jobs| Ok(jobs.list(v1::ListRequest::default()).await?.into_inner().jobs))
    }

    /// A job.
    fn job(&self, py: Python<'_>, id: u64) -> PyResult<String> {
        self.ask(py, async move |jobs| Ok(jobs.get(v1::JobRef { id }).await?.into_inner()))
    }

    /// Stops a job.
    fn cancel(&self, py: Python<'_>, id: u64) -> PyResult<String> {
        self.ask(py, async move |jobs| Ok(jobs.cancel(v1::JobRef { id }).await?.into_inner()))
    }

    /// Lets a job go on from its newest checkpoint.
    fn resume(&self, py: Python<'_>, id: u64) -> PyResult<String> {
        self.ask(py, async move |jobs| Ok(jobs.resume(v1::JobRef { id }).await?.into_inner()))
    }

    /// Deletes a job that has ended, with its results.
    fn delete(&self, py: Python<'_>, id: u64) -> PyResult<String> {
        self.ask(py, async move |jobs| Ok(jobs.delete(v1::JobRef { id }).await?.into_inner()))
    }

    /// The workers.
    fn workers(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, async |jobs| Ok(jobs.workers(v1::WorkersRequest {}).await?.into_inner()))
    }

    /// Downloads the results of a job to a folder.
    fn fetch(&self, py: Python<'_>, id: u64, dir: PathBuf, overwrite: bool) -> PyResult<()> {
        let way = self.0.clone();
        without_lock(py, move || runtime()?.block_on(fetch::download(&way, id, &dir, overwrite)).map(drop))
    }

    /// The lines of a job's log so far, as JSON.
    fn logs(&self, py: Python<'_>, id: u64) -> PyResult<String> {
        let way = self.0.clone();
        without_lock(py, move || {
            let mut lines = Vec::new();
            let mut keep = |line: &v1::LogLine| {
                lines.push(line.clone());
                Ok(())
            };
            runtime()?.block_on(logs::read(&way, id, &mut 0, false, &mut keep))?;
            json(&lines)
        })
    }

    /// The lines of a job's log until the job ends.
    fn watch(&self, id: u64) -> PyResult<Watch> {
        let way = self.0.clone();
        let (lines, received) = mpsc::sync_channel(LINES);
        let follow = move || {
            let mut pass = |line: &v1::LogLine| {
                lines.send(json(line)).map_err(|_| anyhow!("there is no listener any more"))
            };
            let ended =
                runtime().and_then(|runtime| runtime.block_on(logs::follow(&way, id, false, &mut pass)));
            if let Err(error) = ended {
                // Without a listener the error is that it is gone.
                let _ = lines.send(Err(error));
            }
        };
        std::thread::Builder::new().name("grammaton-watch".into()).spawn(follow)?;
        Ok(Watch(Mutex::new(received)))
    }
}

/// Lines that wait for a slow reader.
const LINES: usize = 1024;

impl Client {
    fn ask<T: Serialize>(
        &self,
        py: Python<'_>,
        call: impl AsyncFnOnce(&mut Jobs) -> Result<T, Status> + Send + 'static,
    ) -> PyResult<String> {
        let way = self.0.clone();
        without_lock(py, move || json(&runtime()?.block_on(way.ask(call))?))
    }
}

/// The lines of a log, as they come.
#[pyclass(frozen, module = "grammaton._lib")]
pub struct Watch(Mutex<Receiver<Result<String>>>);

#[pymethods]
impl Watch {
    /// Waits for the next line, as JSON; `None` if the job has ended.
    fn next(&self, py: Python<'_>) -> PyResult<Option<String>> {
        loop {
            let found = detached(py, || {
                let lines = self.0.lock();
                lines.recv_timeout(LOOK)
            });
            match found {
                Ok(line) => return line.map(Some).map_err(|error| refused(py, error)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            }
        }
    }
}

fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value)?)
}

/// Calls without the interpreter lock; the exception says what the service refused.
fn without_lock<T: Send + 'static>(
    py: Python<'_>,
    call: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    interruptible(py, move || Ok(call()))?.map_err(|error| refused(py, error))
}

/// Codes of a service have exceptions of their own.
fn refused(py: Python<'_>, error: anyhow::Error) -> PyErr {
    let message = format!("{error:#}");
    match error.downcast_ref::<Refused>().map(|refused| refused.0.code()) {
        Some(Code::NotFound) => pyo3::exceptions::PyLookupError::new_err(message),
        Some(Code::PermissionDenied | Code::Unauthenticated) => PyPermissionError::new_err(message),
        Some(Code::Unavailable) => pyo3::exceptions::PyConnectionError::new_err(message),
        Some(Code::FailedPrecondition | Code::ResourceExhausted) => {
            pyo3::exceptions::PyRuntimeError::new_err(message)
        }
        _ => exception(py, error),
    }
}
