//! Tests of the program `grammaton` alone. All files are modules of one binary.

mod annotate;
mod annotated;
mod bad_input;
mod boundaries;
mod brackets;
mod check;

mod cli;
mod compare;
mod demo;
mod dependencies;
mod digests;
mod export;
mod formats;
mod grammars;
mod lexicon;
mod limits;
mod lines;
mod morphemes;
mod n_best;
mod new;
mod readme;
mod resealed;
mod segment;
mod suggest;
mod vote;
