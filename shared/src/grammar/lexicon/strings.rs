//! Strings by the million: their symbols end to end, and where each ends.
//!
//! A string costs four bytes a symbol and four more, however often the list is cloned: clones share what they hold until one of them
//! is changed. What is written of them (bincode, JSON) is what a list of lists is, so that hashes and files do not tell how they are
//! held.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::Index;
use std::sync::Arc;

use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::grammar::SymbolId;

/// A list of strings of symbols.
///
/// ```
/// use grammaton::grammar::SymbolId;
/// use grammaton::grammar::lexicon::Strings;
///
/// let strings: Strings = [vec![SymbolId(3)], vec![SymbolId(4), SymbolId(3)]].iter().collect();
/// assert_eq!(strings.len(), 2);
/// assert_eq!(strings[1], [SymbolId(4), SymbolId(3)]);
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Strings(Arc<Held>);

/// Data that clones share.
#[derive(Clone, PartialEq, Eq, Default)]
struct Held {
    symbols: Vec<SymbolId>,
    /// `[n_strings]`: string `i` ends before `symbols[ends[i]]`, where the next one begins.
    ends: Vec<u32>,
}

impl Strings {
    /// Creates an empty list.
    pub fn new() -> Strings {
        Strings::default()
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.0.ends.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.0.ends.is_empty()
    }

    /// Symbols of all strings together.
    pub fn n_symbols(&self) -> usize {
        self.0.symbols.len()
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        size_of_val(&self.0.symbols[..]) + size_of_val(&self.0.ends[..])
    }

    /// The strings, in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter { symbols: &self.0.symbols, start: 0, ends: self.0.ends.iter() }
    }

    /// Puts a string behind the others.
    ///
    /// # Panics
    ///
    /// If the strings have 2³² symbols or more, which are 16 GiB of them.
    pub fn push(&mut self, string: &[SymbolId]) {
        let held = Arc::make_mut(&mut self.0);
        held.symbols.extend_from_slice(string);
        held.end_string();
    }

    /// Keeps the strings at the positions of which `is_kept` is true, in their order, without another list of them.
    pub fn retain(&mut self, mut is_kept: impl FnMut(usize) -> bool) {
        let Held { symbols, ends } = Arc::make_mut(&mut self.0);
        let (mut start, mut n_symbols, mut n) = (0, 0, 0);
        for at in 0..ends.len() {
            let string = start..ends[at] as usize;
            start = string.end;
            if is_kept(at) {
                let length = string.len();
                symbols.copy_within(string, n_symbols);
                n_symbols += length;
                ends[n] = n_symbols as u32;
                n += 1;
            }
        }
        symbols.truncate(n_symbols);
        ends.truncate(n);
    }
}

impl Held {
    fn end_string(&mut self) {
        let end = u32::try_from(self.symbols.len()).expect("strings have fewer than 2^32 symbols");
        self.ends.push(end);
    }
}

impl Index<usize> for Strings {
    type Output = [SymbolId];

    fn index(&self, at: usize) -> &[SymbolId] {
        let Held { symbols, ends } = &*self.0;
        let start = at.checked_sub(1).map_or(0, |before| ends[before] as usize);
        &symbols[start..ends[at] as usize]
    }
}

/// The strings of [`Strings`], in order.
#[derive(Clone)]
pub struct Iter<'a> {
    symbols: &'a [SymbolId],
    start: u32,
    ends: std::slice::Iter<'a, u32>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [SymbolId];

    fn next(&mut self) -> Option<&'a [SymbolId]> {
        let end = *self.ends.next()?;
        let string = &self.symbols[self.start as usize..end as usize];
        self.start = end;
        Some(string)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ends.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}
impl FusedIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Strings {
    type Item = &'a [SymbolId];
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl<S: AsRef<[SymbolId]>> Extend<S> for Strings {
    fn extend<I: IntoIterator<Item = S>>(&mut self, strings: I) {
        strings.into_iter().for_each(|string| self.push(string.as_ref()));
    }
}

impl<S: AsRef<[SymbolId]>> FromIterator<S> for Strings {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Strings {
        let mut all = Strings::new();
        all.extend(strings);
        all
    }
}

impl fmt::Debug for Strings {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.debug_list().entries(self).finish()
    }
}

impl Serialize for Strings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

impl<'de> Deserialize<'de> for Strings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Strings, D::Error> {
        let mut held = Held::default();
        deserializer.deserialize_seq(Reader::<false>(&mut held))?;
        Ok(Strings(Arc::new(held)))
    }
}

/// Reads the strings, or the symbols of one (`IS_STRING`), to the end of those there are. Takes memory for what it has read, never for
/// what is announced.
struct Reader<'a, const IS_STRING: bool>(&'a mut Held);

impl<'de> Visitor<'de> for Reader<'_, false> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("a list of strings of symbols")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Reader::<true>(self.0))?.is_some() {}
        Ok(())
    }
}

impl<'de> Visitor<'de> for Reader<'_, true> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("a string of symbols")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut string: A) -> Result<(), A::Error> {
        while let Some(symbol) = string.next_element()? {
            self.0.symbols.push(symbol);
        }
        self.0.end_string();
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_, true> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grammar::lexicon::{Lexicon, StickStrings};
    use crate::work::task::Named;

    fn symbols(string: &[u32]) -> Vec<SymbolId> {
        string.iter().copied().map(SymbolId).collect()
    }

    #[test]
    fn flat_lists_have_the_bytes_of_nested_lists() {
        let lists = [&[7, 8][..], &[], &[9]].map(symbols).to_vec();
        let strings: Strings = lists.iter().collect();
        let golden = [
            3, 0, 0, 0, 0, 0, 0, 0, // strings
            2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, // of two symbols,
            0, 0, 0, 0, 0, 0, 0, 0, // of none,
            1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, // of one
        ];
        let config = bincode::config::legacy();
        assert_eq!(bincode::serde::encode_to_vec(&strings, config).unwrap(), golden);
        assert_eq!(
            bincode::serde::decode_from_slice(&golden, config).unwrap(),
            (strings.clone(), golden.len())
        );
        assert_eq!(serde_json::to_string(&strings).unwrap(), "[[7,8],[],[9]]");
        let of_lists = Named::new(vec![(SymbolId(1), lists)]);
        let lexicon = Named::new(Lexicon { sticks: vec![StickStrings { symbol: SymbolId(1), strings }] });
        assert_eq!(lexicon.hash, of_lists.hash);
    }

    #[test]
    fn what_is_announced_and_not_there_is_refused() {
        let announced = [u64::MAX.to_le_bytes(), 2u64.to_le_bytes(), [7, 0, 0, 0, 8, 0, 0, 0]].concat();
        let config = bincode::config::legacy();
        assert!(bincode::serde::decode_from_slice::<Strings, _>(&announced, config).is_err());
        assert!(bincode::serde::decode_from_slice::<Strings, _>(&announced[..20], config).is_err());
    }

    /// Law: clones hold nothing of their own until one is changed, and then neither changes the other.
    #[test]
    fn clones_share_what_they_hold() {
        let strings: Strings = [&[7, 8][..], &[9]].map(symbols).iter().collect();
        let mut longer = strings.clone();
        assert!(Arc::ptr_eq(&strings.0, &longer.0));
        longer.push(&symbols(&[5]));
        assert_eq!((strings.len(), longer.len()), (2, 3));
        assert_eq!((&strings[1], &longer[2]), (&symbols(&[9])[..], &symbols(&[5])[..]));
    }

    proptest! {
        #[test]
        fn strings_round_trip(lists in proptest::collection::vec(proptest::collection::vec(0u32..9, 0..5), 0..9)) {
            let lists: Vec<Vec<SymbolId>> = lists.iter().map(|list| symbols(list)).collect();
            let strings: Strings = lists.iter().collect();
            prop_assert_eq!(strings.len(), lists.len());
            prop_assert_eq!(strings.n_symbols(), lists.iter().map(Vec::len).sum::<usize>());
            prop_assert!(strings.iter().eq(lists.iter().map(Vec::as_slice)));
            prop_assert!((0..lists.len()).all(|at| strings[at] == lists[at][..]));
            for kept in [0, 1, 2, u32::MAX] {
                let is_kept = |at: usize| kept >> (at % 2) & 1 == 1;
                let mut some = strings.clone();
                some.retain(is_kept);
                let expected = lists.iter().enumerate().filter(|(at, _)| is_kept(*at)).map(|(_, list)| list);
                prop_assert_eq!(some, expected.collect());
            }
            prop_assert_eq!(format!("{strings:?}"), format!("{lists:?}"));
            let config = bincode::config::standard();
            let bytes = bincode::serde::encode_to_vec(&strings, config).unwrap();
            prop_assert_eq!(&bytes, &bincode::serde::encode_to_vec(&lists, config).unwrap());
            prop_assert_eq!(bincode::serde::decode_from_slice::<Strings, _>(&bytes, config).unwrap(), (strings, bytes.len()));
        }
    }
}
