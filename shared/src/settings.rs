//! How a model is trained: the table `[inference]` of a job file, which is also what [`crate::Fit`] takes.
//!
//! A setting is declared once, in [`Inference`], with its type, default, help, range and readers ([`key`]); which methods train which
//! models is in [`method`].

pub mod inference;
pub mod key;
pub mod method;

pub use inference::Inference;
pub use method::{Estimator, Method, Model, ModelKind};
