//! Tests of what one program can show by itself. One binary: each file is a module.

mod bad_input;
#[path = "../../../tests/src/requirement.rs"]
mod requirement;

mod cli;
mod digests;
mod limits;
mod lines;
mod readme;
mod resealed;
