//! The words or morphemes of a text, or the heads of tagged words, without a job file: a corpus and a job are written, and trained as any job.
//!
//! [`text`] reads it as its [`keys`] say, [`model`] chooses grammars, [`morphemes`] those of words, [`effort`] what fits into a time ([`time_limit`]), and [`sampling`] writes the job. [`dependencies`] does all of it for
//! tagged words.

pub mod keys;

pub mod effort;

pub mod text;

pub mod time_limit;

pub mod sampling;

pub mod model;

pub mod morphemes;

pub mod dependencies;
