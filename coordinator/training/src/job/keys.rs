//! The keys of a job: which of them its points read, and their defaults.
//!
//! Tables declare their keys ([`grammaton::settings::key`]); parsing, checks, the written `job.toml`, `docs/JOB.md` and the tests that set every
//! key for every method are derived from that declaration.

use grammaton::data::corpus::Unit;
use grammaton::grammar::auto::Auto;
use grammaton::settings::key::{Facts, Key, PathOf};
use grammaton::settings::{Estimator, Inference, Model, ModelKind};

use super::{CorpusTable, GrammarSource, Job, ModelTable, OutputTable, Point, to_table};

impl Facts for Job {
    fn model(&self) -> Model {
        self.model.model()
    }

    fn is_held_out(&self) -> bool {
        self.corpus.is_held_out()
    }

    fn is_split(&self) -> bool {
        self.corpus.is_split()
    }

    fn has_voters(&self) -> bool {
        !self.model.voters.is_empty() || self.model.grammar == GrammarSource::Choose
    }

    fn has_grammar(&self, is: fn(Auto) -> bool) -> bool {
        self.model.grammars().any(|source| source.is_made(is))
    }

    fn has_tokens(&self) -> bool {
        self.corpus.options().effective_unit() == Unit::Token
    }
}

/// A key, as jobs have it.
pub trait KeyOfJob {
    /// Whether the model and estimator of a point read it.
    fn is_read_at(&self, job: &Job, point: &Point) -> bool;

    /// Whether the model and estimator of any point read it.
    fn is_read(&self, job: &Job) -> bool;

    /// Whether it has an effect at a point of a job.
    fn acts_at(&self, job: &Job, point: &Point) -> bool;

    /// Default for a kind of model, as TOML.
    fn default_of(&self, kind: ModelKind) -> Option<toml::Value>;

    /// Default for kinds of model without one of their own, as TOML.
    fn general_default(&self) -> Option<toml::Value>;
}

impl KeyOfJob for Key {
    fn is_read_at(&self, job: &Job, point: &Point) -> bool {
        let model = job.model.model();
        Estimator::of(&point.inference).is_some_and(|estimator| self.is_read_by(model, estimator))
    }

    fn is_read(&self, job: &Job) -> bool {
        job.points.iter().any(|point| self.is_read_at(job, point))
    }

    fn acts_at(&self, job: &Job, point: &Point) -> bool {
        self.is_read_at(job, point) && self.need.is_none_or(|need| (need.holds)(job, &point.inference))
    }

    fn default_of(&self, kind: ModelKind) -> Option<toml::Value> {
        match self.defaults.iter().find(|(of, _)| *of == kind) {
            Some((_, value)) => {
                Some(value.parse().unwrap_or_else(|_| toml::Value::String((*value).to_owned())))
            }
            None => self.general_default(),
        }
    }

    fn general_default(&self) -> Option<toml::Value> {
        let table = match self.table {
            "model" => to_table(&ModelTable::default()),
            "corpus" => to_table(&CorpusTable::default()),
            "output" => to_table(&OutputTable::default()),
            _ => to_table(&Inference::default()),
        };
        table.get(self.name).cloned()
    }
}

/// Whether a value of such a key is a path to a file or folder of this machine.
pub fn is_local(path: PathOf, value: &str) -> bool {
    !value.is_empty() && !(path.is_word)(value) && !basics::store::is_url(value)
}
