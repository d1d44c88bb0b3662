//! Special functions.
