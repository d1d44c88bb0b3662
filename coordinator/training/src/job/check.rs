//! Checks of the values of a job.
//!
//! In: a point of a job, and the text that it was read from. Out: the first key whose value is outside its range or conflicts with
//! other values, with its location and the expected value.

use std::fmt;

use grammaton::grammar::auto::Auto;
use grammaton::models::decode::Decoder;
use grammaton::train::mixture::MixtureError;

use super::keys::KeyOfJob as _;
use super::located::{Fault, Node, Problem};
use super::{GrammarSource, Job, Method, ModelKind, ModelTable, Start};
use grammaton::settings::Estimator;
use grammaton::settings::inference::SettingError;
use grammaton::settings::key::{Key, OutOfRange};

impl Job {
    /// Refuses numbers outside their range.
    pub(super) fn check_ranges(&self, root: &Node) -> Result<(), Fault> {
        let Job { model, corpus, inference, output, .. } = self;
        let outside = model.out_of_range().or_else(|| corpus.out_of_range());
        let outside = outside.or_else(|| inference.out_of_range()).or_else(|| output.out_of_range());
        let Some(OutOfRange { key, found, expected }) = outside else { return Ok(()) };
        Err(Fault::new(root.find(&key.path()).unwrap_or(root), Problem::Mismatch { found, expected }))
    }

    /// Refuses keys of `of` that no point reads.
    pub(super) fn check_readers<'k>(
        &self,
        mut of: impl Iterator<Item = &'k Key>,
        root: &Node,
    ) -> Result<(), Fault> {
        let (Some(key), Some(point)) = (of.find(|key| !key.is_read(self)), self.points.first()) else {
            return Ok(());
        };
        let model = self.model.model();
        let by = Estimator::of(&point.inference).map(|estimator| estimator.in_words(model));
        let problem =
            Problem::Unread { by: by.unwrap_or_default(), readers: key.readers_in_words().replace('`', "") };
        Err(Fault::new(root.find(&key.path()).unwrap_or(root), problem))
    }

    /// Notices about the keys in `set` that have no effect because of other keys.
    pub(super) fn unused<'k>(&self, set: impl Iterator<Item = &'k Key>) -> Vec<String> {
        let acts = |key: &&Key| self.points.iter().any(|point| key.acts_at(self, point));
        let message = |key: &Key| {
            let need = key.need.map_or("", |need| need.text);
            format!("{} has no effect here; it needs {}", key.path(), need.replace('`', ""))
        };
        set.filter(|key| !acts(key)).map(message).collect()
    }

    /// Refuses conflicting values.
    pub(super) fn check(&self, root: &Node) -> Result<(), Fault> {
        let inference = &self.inference;
        let holds = |path: &str, holds: bool, found: &dyn fmt::Display, expected: &str| {
            if holds {
                return Ok(());
            }
            let problem = Problem::Mismatch { found: found.to_string(), expected: expected.to_owned() };
            Err(Fault::new(root.find(path).unwrap_or(root), problem))
        };
        let (path, dir) = (&self.corpus.path, &self.output.dir);
        holds("corpus.path", !path.as_os_str().is_empty(), &"an empty one", "the path of a file")?;
        holds("output.dir", !dir.as_os_str().is_empty(), &"an empty one", "the path of a folder")?;
        let source = &self.model.grammar;
        let named = !matches!(source, GrammarSource::File(path) if path.as_os_str().is_empty());
        holds("model.grammar", named, &"an empty one", "the path of a file, or \"auto:unigram\"")?;
        let kind = self.model.kind;
        let is_made = match kind {
            ModelKind::PcfgLa => *source == GrammarSource::Treebank,
            ModelKind::Dmv => *source == GrammarSource::Dmv,
            ModelKind::Adaptor | ModelKind::Pcfg => {
                !matches!(source, GrammarSource::Treebank | GrammarSource::Dmv)
            }
        };
        let expected = match kind {
            ModelKind::PcfgLa => "left out: the rules are those of the trees",
            ModelKind::Dmv => "left out: the rules are those of the dependency model",
            ModelKind::Adaptor | ModelKind::Pcfg => {
                "a file, or a grammar that `grammaton grammars` lists (\"auto:treebank\" is for model.kind = \"pcfg-la\", \"auto:dmv\" for \"dmv\")"
            }
        };
        holds("model.grammar", is_made, source, expected)?;
        if *source == GrammarSource::Choose {
            let suits = kind == ModelKind::Adaptor && inference.method == Method::Hastings;
            let expected = "a grammar, or model.kind = \"adaptor\" and inference.method = \"hastings\", for which grammars are chosen";
            holds("model.grammar", suits, source, expected)?;
            let voters: Vec<String> = self.model.voters.iter().map(ToString::to_string).collect();
            let expected = "left out: model.grammar = \"auto\" chooses a voter too";
            holds("model.voters", voters.is_empty(), &voters.join(", "), expected)?;
            let is_free = matches!(inference.start, Start::Uniform | Start::Incremental);
            let found = format!("\"{}\"", inference.start.name());
            let expected = "\"uniform\" or \"incremental\" with model.grammar = \"auto\"";
            holds("inference.start", is_free, &found, expected)?;
        }
        for (at, voter) in self.model.voters.iter().enumerate() {
            let expected = "a grammar that `grammaton grammars` lists, such as \"auto:colloc-syllable\"";
            holds("model.voters", matches!(voter, GrammarSource::Auto(_)), voter, expected)?;
            let is_new = voter != source && !self.model.voters[..at].contains(voter);
            holds("model.voters", is_new, voter, "different grammars, each once")?;
            let is_free = matches!(inference.start, Start::Uniform | Start::Incremental);
            let found = format!("\"{}\"", inference.start.name());
            holds("inference.start", is_free, &found, "\"uniform\" or \"incremental\" with model.voters")?;
        }
        let ModelTable { cascade, prefixes, suffixes, .. } = &self.model;
        if *cascade > 0 {
            let has_affixes = source.is_made(Auto::has_affixes);
            holds(
                "model.grammar",
                has_affixes,
                source,
                "a grammar of morphemes for model.cascade, such as \"auto:morph1\"",
            )?;
            for (key, path) in [("model.prefixes", prefixes), ("model.suffixes", suffixes)] {
                let expected = "left out: model.cascade finds them";
                holds(key, path.as_os_str().is_empty(), &path.display(), expected)?;
            }
            let is_free = matches!(inference.start, Start::Uniform | Start::Incremental);
            let found = format!("\"{}\"", inference.start.name());
            holds("inference.start", is_free, &found, "\"uniform\" or \"incremental\" with model.cascade")?;
        }
        let adapted = !self.model.adapted.is_empty();
        let suits = kind == ModelKind::Dmv || !adapted;
        holds("model.adapted", suits, &"tags", "left out, unless model.kind is \"dmv\"")?;

        inference.check_method(self.model.model()).map_err(|SettingError { key, found, expected }| {
            let at = root.find(&format!("inference.{key}")).unwrap_or(root);
            Fault::new(at, Problem::Mismatch { found, expected })
        })?;
        inference.constrained().map_err(|error| {
            let keys = match error {
                MixtureError::Limit(_) => ["inference.base_to", "inference.base_from", "inference.base_by"],
                _ => ["inference.mixture", "inference.base_to", "inference.base_from"],
            };
            let node = keys.iter().find_map(|key| root.find(key)).or(root.find("inference.components"));
            Fault::new(node.unwrap_or(root), Problem::Other(error.to_string()))
        })?;
        let named = !inference.start.is_given() || !inference.start_from.as_os_str().is_empty();
        holds("inference.start_from", named, &"none", "the file that inference.start asks for")?;
        let decoders = &self.output.decoders;
        holds("output.decoders", !decoders.is_empty(), &"none", "at least one decoder, as in [\"viterbi\"]")?;
        let finds_arcs = |decoder: &Decoder| matches!(decoder, Decoder::Viterbi | Decoder::MbrArcs);
        let (suits, expected) = match kind {
            ModelKind::Dmv => {
                (decoders.iter().all(finds_arcs), "\"viterbi\" or \"mbr-arcs\" for a dependency model")
            }
            _ => (!decoders.contains(&Decoder::MbrArcs), "others: \"mbr-arcs\" is for model.kind = \"dmv\""),
        };
        holds("output.decoders", suits, &"another", expected)?;
        let distinct = (0..decoders.len()).all(|at| !decoders[..at].contains(&decoders[at]));
        holds("output.decoders", distinct, &"one named twice", "a list of different decoders")
    }
}
