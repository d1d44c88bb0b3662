//! Variational adaptor grammars (Cohen, Blei & Smith 2010), with the misprints corrected (`docs/MATHS.md`).
//!
//! [`start`] is what training begins with; [`params`] holds q(v) and q(θ), their updates and the bound; [`hyper`] fits the hyper-parameters; [`candidates`] ranks
//! the strings that sticks begin with; [`selection`] chooses among them by the bound. Training goes from round to round in [`crate::train::adaptor`], from sample to sample in
//! over samples of the corpus too; [`super::decode`] finds the best analyses.
//!
//! A step of variational Bayes. The sentences are the data; each string of the stick is an item too, under W's own rules:
//!
//! ```
//! use grammaton::forest::Prepared;
//! use grammaton::forest::inside::expected_uses;
//! use grammaton::grammar::lexicon::{Lexicon, StickStrings};
//! use grammaton::grammar::{Grammar, StickId, syntax};
//! use grammaton::models::adaptor::{Params, Stick};
//!
//! let text = "1 1 S --> W\n1 1 S --> W S\nW --> L\nW --> L W\n1 1 L --> a\n1 1 L --> b\n";
//! let (grammar, _) = syntax::parse(text, "words.gr").unwrap();
//! let word = grammar.symbol("W").unwrap();
//! let strings = ["a", "b", "a b"].map(|string| grammar.tokens(string).unwrap());
//! let lexicon = Lexicon { sticks: vec![StickStrings { symbol: word, strings: strings.iter().collect() }] };
//! let of_stick = lexicon.space(&grammar).stick(StickId(0));
//! let mut params = Params::new(&grammar, vec![Stick::new(word, of_stick, 0.5, 1.0)]);
//! let prepared = Prepared::new(grammar, lexicon);
//!
//! let base = prepared.binary.base[0];
//! let roots = [Grammar::START.0, base, base, base];
//! let items = [prepared.grammar.tokens("a b a b").unwrap()].into_iter().chain(strings);
//! let mut bounds = Vec::new();
//! let mut weights = params.uniform_weights(&prepared.grammar, &prepared.lexicon);
//! for _ in 0..3 {
//!     let (mut log_z, mut uses) = (0.0, vec![0.0; weights.len()]);
//!     for (root, item) in roots.into_iter().zip(items.clone()) {
//!         let forest = prepared.builder(false).build(root, &item)?.expect("a derivation");
//!         let (z, of_item) = expected_uses(&forest, &weights);
//!         log_z += z.ln();
//!         uses.iter_mut().zip(of_item).for_each(|(sum, uses)| *sum += uses);
//!     }
//!     bounds.push(log_z - params.divergence(&prepared.grammar));
//!     params.update(&uses);
//!     weights = params.weights(&prepared.grammar, &prepared.lexicon);
//! }
//! assert!(bounds[1] <= bounds[2], "the first is of no q");
//! # Ok::<(), grammaton::forest::TooAmbiguous>(())
//! ```

pub mod candidates;
pub mod hyper;
pub mod params;
pub mod selection;
pub mod start;

pub use params::{Params, ParamsError, Stick};
