//! The kinds of work on the wire, one a file: conversion of request and answer, their checks, and upper bounds on their
//! sizes. [`grammaton::work::task`] has the kinds themselves.
//!
//! To add a kind, write its file, add a message to `LeaseHead.work` and to `Answer` of `work.proto`, and add it to the four
//! functions of [`super::fits`], to [`super::lease`], and to [`super::answer`].

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
