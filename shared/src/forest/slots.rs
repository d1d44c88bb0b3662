//! Parameters with fixed factors.
//!
//! Edges of a forest hold parameters, and a use of a parameter may count more in one place than in another ([`crate::models::dmv::factors`]). A *slot*
//! is a pair of a parameter and the logarithm of a factor, with a number beyond all parameters, which an edge holds in place of the parameter.
//! Its weight is that of the parameter times the factor, its uses are uses of the parameter.

use rustc_hash::FxHashMap;

/// Slots by number.
#[derive(Clone, Debug)]
pub struct Slots {
    /// Number of the first slot; parameters are below.
    first: u32,
    /// Parameter and logarithm of the factor.
    slots: Vec<(u32, f64)>,
    /// By parameter and bits of the logarithm.
    known: FxHashMap<(u32, u64), u32>,
}

impl Slots {
    /// No slots yet; they will be numbered from `first`, beyond all parameters.
    pub fn from(first: u32) -> Slots {
        Slots { first, slots: Vec::new(), known: FxHashMap::default() }
    }

    /// The number of a parameter with a factor, which is the parameter itself if the factor is one.
    pub fn number(&mut self, param: u32, ln_factor: f64) -> u32 {
        if ln_factor == 0.0 {
            return param;
        }
        let next = self.first + self.slots.len() as u32;
        let number = *self.known.entry((param, ln_factor.to_bits())).or_insert(next);
        if number == next {
            self.slots.push((param, ln_factor));
        }
        number
    }

    /// The parameter of a number, and the logarithm of its factor.
    pub fn resolve(&self, number: u32) -> (u32, f64) {
        match number.checked_sub(self.first) {
            Some(slot) => self.slots[slot as usize],
            None => (number, 0.0),
        }
    }

    /// All slots, in the order of their numbers.
    pub fn all(&self) -> &[(u32, f64)] {
        &self.slots
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

impl Default for Slots {
    /// Numbered from 2³¹, beyond the parameters of every grammar.
    fn default() -> Slots {
        Slots::from(1 << 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_resolve_to_what_they_were_made_of() {
        let mut slots = Slots::from(10);
        assert_eq!([slots.number(3, 0.0), slots.number(3, 1.5), slots.number(3, -2.0)], [3, 10, 11]);
        assert_eq!([slots.number(3, 1.5), slots.number(4, 1.5)], [10, 12]);
        assert_eq!([slots.resolve(3), slots.resolve(11)], [(3, 0.0), (3, -2.0)]);
    }
}
