//! The words or morphemes of a text, without a job file: a corpus and a job are written for it, and trained as any job.
//!
//! [`text`] reads it as its [`keys`] say, [`model`] chooses grammars, [`effort`] what fits into a time ([`time_limit`]), and [`sampling`] writes the job.

pub mod keys;

pub mod effort;

pub mod text;

pub mod time_limit;

pub mod sampling;

pub mod model;
