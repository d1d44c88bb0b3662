//! Variational adaptor grammars (Cohen, Blei & Smith 2010), with the misprints corrected (`docs/MATHS.md`).
//!
//! [`start`] is what training begins with; [`params`] holds q(v) and q(θ), their updates and the bound; [`hyper`] fits the hyper-parameters; [`candidates`] ranks
//! the strings that sticks begin with; [`selection`] chooses among them by the bound. Training goes from round to round in [`crate::train::adaptor`], from sample to sample in
//! [`crate::train::adaptor_svb`]; [`super::decode`] finds the best analyses.

pub mod candidates;
pub mod hyper;
pub mod params;
pub mod selection;
pub mod start;

pub use params::{Params, ParamsError, Stick};
