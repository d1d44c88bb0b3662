//! `/metrics` of a service, for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::{House, Oops};
use crate::status::metrics::service_exposition;

/// Answers a scrape.
pub async fn page(State(house): State<House>) -> Result<Response, Oops> {
    let fleet = house.fleet().await?;
    let text = house.blocking(move |service| Ok(service_exposition(&service.jobs(), &fleet))).await?;
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, text).into_response())
}
