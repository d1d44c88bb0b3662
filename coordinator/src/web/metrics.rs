//! `/metrics` of a service, for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::{House, Oops};
use crate::service::Service;
use crate::web::exposition::service_exposition;

/// Answers a scrape.
pub async fn page(State(house): State<House>) -> Result<Response, Oops> {
    let fleet = house.fleet().await?;
    let draw =
        move |service: &Service| Ok(service_exposition(&service.by_state(), &service.working(), &fleet));
    let text = house.blocking(draw).await?;
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, text).into_response())
}
