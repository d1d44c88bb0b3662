//! A job, from its file to its results, on any fleet.
//!
//! Modules in the order of reading; a module uses only modules before it (`tests/tests/all/order.rs`):
//!
//! - *in*: [`job`] (the job file), [`input`] (its corpora and grammars);
//! - *training*: [`model`] (the model file), [`inspection`] (of a trained model), [`metrics`] and [`outcome`] (metrics of rounds, and
//!   results), [`baselines`] (scores below those of trivial analyses), [`verdict`] (the conclusion, in a sentence), [`snapshot`] (learned parameters for display), [`events`] (events of a run, and their readers), [`time_left`] (an estimate), [`train`], [`choice`] (of grammars, without gold), [`row`], [`lexicon`], [`errors`], [`boundary`] and [`certainty`] (parts of results);
//! - *out*: [`progress`] and [`report`] (terminal and HTML), [`output`] (the folder of results), [`run`] (a job from its file to its results);
//! - *back in*: [`segmented`] (a result that is read again), [`compare`] (several beside each other), [`export`] (in formats of other programs), [`suggest`] (the lines to annotate), [`annotation_file`] and [`relearn`] (what is said of them, and learned from it).

pub mod job;

pub mod input;

pub mod model;

pub mod word_classes;

pub mod inspection;

pub mod row;

pub mod lexicon;

pub mod errors;

pub mod boundary;

pub mod certainty;

pub mod metrics;

pub mod baselines;

pub mod verdict;

pub mod outcome;

pub mod snapshot;

pub mod events;

pub mod time_left;

pub mod train;

pub mod choice;

pub mod cascade;

pub mod progress;

pub mod report;

pub mod output;

pub mod run;

pub mod segmented;

pub mod compare;

pub mod export;

pub mod suggest;

pub mod calibration;

pub mod annotation_file;

pub mod relearn;

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
