//! Variational adaptor grammars (Cohen, Blei & Smith 2010).

pub mod params;

pub use params::{Model, Params, Stick};
