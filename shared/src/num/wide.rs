//! Weights whose exponent has no bounds that matter.

use serde::{Deserialize, Serialize};

/// A non-negative number `mantissa · 2^exponent`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Wide {
    /// 0, or in [1, 2).
    pub mantissa: f64,
    /// 0 if the mantissa is 0.
    pub exponent: i32,
}
