//! Settings of training: the table `[inference]` of a job file, which is also what [`crate::Fit`] takes, and the types of its fields.

// A setting is declared once, in `Inference`, with its type, default, help, range and readers (`key.rs`); `method.rs` says which methods
// train which models.

#[doc(hidden)]
pub mod inference;
#[doc(hidden)]
pub mod key;
#[doc(hidden)]
pub mod method;

#[doc(inline)]
pub use crate::models::dmv::constraint::{ArcClass, Component};
#[doc(inline)]
pub use crate::models::dmv::layout::Side;
#[doc(inline)]
pub use crate::models::logistic_normal::PointEstimate;
pub use inference::Inference;
#[doc(inline)]
pub use inference::{
    AdaptorPrior, FamiliesSource, HarmonicStops, Hyperparameter, RulePrior, Selection, Start,
};
#[doc(hidden)]
pub use method::{Estimator, Method, Model, ModelKind};
