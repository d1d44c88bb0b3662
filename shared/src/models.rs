//! Models, each in a folder: what it is made of, how a sentence is read with it, how counts become parameters.
//!
//! [`pcfg`] (Johnson, Griffiths & Goldwater 2007; Wang & Blunsom 2013), [`adaptor`] (Cohen, Blei & Smith 2010), [`latent`] (Matsuzaki,
//! Miyao & Tsujii 2005), [`dmv`] (Klein & Manning 2004), [`logistic_normal`] (Cohen, Gimpel & Smith 2008), [`sampler`] (trees given the
//! rest, for PCFGs and adaptor grammars); above them [`decode`], the best analyses of a sentence, [`segments`], probabilities of its segments, and [`tally`], what samples
//! say of one.
//!
//! [`Trained`] is what training gives: all that reading new sentences needs.
//!
//! A PCFG from given counts, and what it says of a sentence:
//!
//! ```
//! use grammaton::forest::Prepared;
//! use grammaton::grammar::groups::{Estimate, Groups};
//! use grammaton::grammar::lexicon::Lexicon;
//! use grammaton::grammar::syntax;
//! use grammaton::models::decode::{Decode, Decoder, decode};
//! use grammaton::models::pcfg::{self, em};
//! use grammaton::models::{Model, Params};
//!
//! let (grammar, _) = syntax::parse("1 1 S --> S S\n1 1 S --> a\n1 1 S --> b\n", "grammar").unwrap();
//! let (lexicon, tokens) = (Lexicon::default(), grammar.tokens("a b").unwrap());
//! let groups = Groups::new(&grammar, &lexicon);
//! let estimate = Estimate { alpha: groups.alpha(&grammar), counts: vec![0.0, 2.0, 1.0, 1.0] };
//! let weights = em::weights(&groups, &estimate);
//! let params = Params::Pcfg(pcfg::Params::new(&groups, estimate, weights, true));
//! let model = Model { grammar, lexicon, params, segments: Vec::new() };
//! model.check()?;
//!
//! let weights = model.decoding_weights();
//! let prepared = Prepared::new(model.grammar, model.lexicon);
//! let with = Decode { weights, segments: Vec::new(), decoders: vec![Decoder::Viterbi], trees: true, spans: false, open: false };
//! let decoded = decode(&prepared, &with, &[&tokens]).unwrap().remove(0);
//! assert_eq!(decoded.trees, ["(S (S a) (S b))"]);
//! assert!((decoded.log_z - (1.0_f64 / 32.0).ln()).abs() < 1e-12);
//! # Ok::<(), grammaton::models::ModelError>(())
//! ```

pub mod adaptor;
pub mod baselines;
pub mod crf;
pub mod decode;
pub mod dmv;
pub mod edges;
pub mod latent;
pub mod logistic_normal;
pub mod pcfg;
pub mod sampler;
pub mod segments;
pub mod tally;
pub mod vote;
pub mod word_classes;

use crate::grammar::check::Defect;
use crate::grammar::groups::Groups;
use crate::grammar::lexicon::{Lexicon, LexiconError};
use crate::grammar::{Grammar, SymbolId};
use crate::num::Wide;

/// A trained model: all data for reading new sentences.
#[derive(Clone, PartialEq, Debug)]
pub enum Trained {
    /// A grammar, its strings and their parameters.
    Grammar(Model),
    /// The rules of a treebank, whose labels have subtypes.
    Treebank(latent::parse::Model),
}

impl Trained {
    /// The model of a grammar, if it is one.
    pub fn of_grammar(&self) -> Option<&Model> {
        match self {
            Trained::Grammar(model) => Some(model),
            Trained::Treebank(_) => None,
        }
    }

    /// Checks that every index points at something, and every distribution is one.
    pub fn check(&self) -> Result<(), ModelError> {
        match self {
            Trained::Grammar(model) => model.check(),
            Trained::Treebank(model) => Ok(model.check()?),
        }
    }
}

/// Why a trained model does not hold together.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ModelError {
    /// The grammar is invalid.
    #[error("its grammar: {0}")]
    Grammar(#[from] Defect),
    /// The strings do not belong to the grammar.
    #[error(transparent)]
    Lexicon(#[from] LexiconError),
    /// The parameters do not belong to an adaptor grammar.
    #[error(transparent)]
    Adaptor(#[from] adaptor::ParamsError),
    /// The parameters do not belong to a PCFG.
    #[error(transparent)]
    Pcfg(#[from] pcfg::ParamsError),
    /// The priors do not belong to the grammar.
    #[error(transparent)]
    LogisticNormal(#[from] logistic_normal::PriorsError),
    /// The rules of a treebank or their weights.
    #[error(transparent)]
    Treebank(#[from] latent::parse::ModelError),
    /// A segment is a symbol that is no nonterminal.
    #[error("segments are not nonterminals")]
    Segments,
}

/// A trained model of a grammar.
#[derive(Clone, PartialEq, Debug)]
pub struct Model {
    /// The grammar.
    pub grammar: Grammar,
    /// The strings, with those that are no longer in use.
    pub lexicon: Lexicon,
    /// The learned parameters.
    pub params: Params,
    /// The nonterminals whose constituents are the segments of a sentence.
    pub segments: Vec<SymbolId>,
}

/// Learned parameters, by kind of model.
#[derive(Clone, PartialEq, Debug)]
pub enum Params {
    /// An adaptor grammar's.
    Adaptor(adaptor::Params),
    /// A PCFG's.
    Pcfg(pcfg::Params),
    /// A PCFG's with logistic-normal priors.
    LogisticNormal(logistic_normal::Params),
}

impl Model {
    /// Weights by parameter, then the escape weights of the lexicon's sticks: what [`crate::models::decode::Decode`] needs.
    pub fn decoding_weights(&self) -> Vec<Wide> {
        match &self.params {
            Params::Adaptor(params) => params.decoding_weights(&self.grammar, &self.lexicon),
            Params::Pcfg(params) => params.decoding_weights(),
            Params::LogisticNormal(params) => params.decoding_weights(&self.grammar),
        }
    }

    /// Weights for the probability of sentences that were not trained on.
    pub fn predictive_weights(&self) -> Vec<Wide> {
        match &self.params {
            Params::Adaptor(_) => self.decoding_weights(),
            Params::Pcfg(params) => params.predictive_weights(&Groups::new(&self.grammar, &self.lexicon)),
            Params::LogisticNormal(params) => params.predictive_weights(&self.grammar),
        }
    }

    /// The variational parameters of an adaptor grammar.
    pub fn adaptor(&self) -> Option<&adaptor::Params> {
        match &self.params {
            Params::Adaptor(params) => Some(params),
            Params::Pcfg(_) | Params::LogisticNormal(_) => None,
        }
    }

    /// Checks that every index points at something, and every distribution is one.
    pub fn check(&self) -> Result<(), ModelError> {
        let Model { grammar, lexicon, params, segments } = self;
        grammar.check()?;
        lexicon.check(grammar)?;
        match params {
            Params::Adaptor(params) => params.check(grammar, lexicon)?,
            Params::Pcfg(params) => params.check(grammar, lexicon)?,
            Params::LogisticNormal(params) => params.check(grammar)?,
        }
        if !segments.iter().all(|&symbol| grammar.is_nonterminal(symbol)) {
            return Err(ModelError::Segments);
        }
        Ok(())
    }
}
