//! `/metrics` of a service, for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::{App, PageError};
use crate::Service;
use crate::web::exposition::service_exposition;

/// Answers a scrape.
pub async fn page(State(app): State<App>) -> Result<Response, PageError> {
    let fleet = app.fleet().await?;
    let draw =
        move |service: &Service| Ok(service_exposition(&service.by_state(), &service.working(), &fleet));
    let text = app.blocking(draw).await?;
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, text).into_response())
}
