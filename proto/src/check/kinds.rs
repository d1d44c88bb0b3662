//! The kinds of work, one a file: checks of request and answer, and upper bounds on the sizes of answers.
//! [`grammaton::work::task`] has the kinds themselves.
//!
//! To add a kind, write its file, and add it to [`super::work`], [`super::answer`] and [`super::largest_answer`].

pub(super) mod annotate;
pub(super) mod candidates;
pub(super) mod collapse;
pub(super) mod cover;
pub(super) mod decode;
pub(super) mod expect;
pub(super) mod fit;
pub(super) mod index;
pub(super) mod sample;
pub(super) mod sweep;
