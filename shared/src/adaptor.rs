//! Variational adaptor grammars (Cohen, Blei & Smith 2010), with the misprints corrected (`docs/MATHS.md`).
//!
//! [`start`] is what training begins with; [`params`] holds q(v) and q(θ), their updates and the bound; [`hyper`] fits the hyper-parameters; [`candidates`] ranks
//! the strings that sticks begin with; [`selection`] chooses among them by the bound; [`vb`] takes them from round to round, [`svb`] from sample to
//! sample; [`decode`] finds the best analyses.

pub mod candidates;
pub mod decode;
pub mod hyper;
pub mod params;
pub mod selection;
pub mod start;
pub mod svb;
pub mod vb;

pub use params::{Params, Stick};
