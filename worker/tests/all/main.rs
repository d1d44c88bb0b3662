//! Tests of the worker as a program. One binary: each file is a module.

mod cli;
