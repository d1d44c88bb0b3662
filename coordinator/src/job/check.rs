//! Which values a job can have.
//!
//! In: one point of a job, and the text that it was read from. Out: the first key whose value is outside its range, or does not go
//! with the others, with its place and what is expected.

use std::fmt;

use shared::mixture::{MAX_COMPONENTS, MixtureError};
use shared::task::Decoder;

use super::located::{Fault, Node, Problem};
use super::{FamiliesSource, GrammarSource, Job, Method, ModelKind, RulePrior, Start};

impl Job {
    /// Refuses values outside their range.
    pub(super) fn check(&self, root: &Node) -> Result<(), Fault> {
        let inference = &self.inference;
        let in_range = |path: &str, holds: bool, found: &dyn fmt::Display, range: &str| {
            if holds {
                return Ok(());
            }
            let problem = Problem::Mismatch { found: found.to_string(), expected: range.to_owned() };
            Err(Fault::new(root.find(path).unwrap_or(root), problem))
        };
        let (path, dir) = (&self.corpus.path, &self.output.dir);
        in_range("corpus.path", !path.as_os_str().is_empty(), &"an empty one", "the path of a file")?;
        in_range("output.dir", !dir.as_os_str().is_empty(), &"an empty one", "the path of a folder")?;
        let grammar =
            !matches!(&self.model.grammar, GrammarSource::File(path) if path.as_os_str().is_empty());
        in_range("model.grammar", grammar, &"an empty one", "the path of a file, or \"auto:unigram\"")?;
        let max_symbols = self.corpus.max_symbols;
        in_range("corpus.max_symbols", max_symbols >= 1, &max_symbols, "1 or more")?;
        let truncation = inference.truncation;
        let holds = (1..=100_000_000).contains(&truncation);
        in_range("inference.truncation", holds, &truncation, "from 1 to 100000000")?;
        let rho = inference.rho;
        in_range("inference.rho", (-10.0..=10.0).contains(&rho), &rho, "from -10 to 10")?;
        let from_start = !self.model.is_adapted()
            && matches!(self.model.kind, ModelKind::Pcfg | ModelKind::Dmv)
            && !inference.method.is_sampler();
        let holds = inference.max_rounds >= 1 || from_start;
        in_range(
            "inference.max_rounds",
            holds,
            &inference.max_rounds,
            "1 or more, with this model and method",
        )?;
        if let Some(tolerance) = inference.tolerance {
            let holds = (0.0..1.0).contains(&tolerance);
            in_range("inference.tolerance", holds, &tolerance, "0 or more and below 1")?;
        }
        let share = inference.drop_share;
        in_range("inference.drop_share", share > 0.0 && share <= 1.0, &share, "above 0 and at most 1")?;
        let a = inference.concentration;
        in_range("inference.concentration", (1e-3..=1e6).contains(&a), &a, "from 0.001 to 1000000")?;
        let b = inference.discount;
        in_range("inference.discount", (0.0..=0.99).contains(&b), &b, "from 0 to 0.99")?;
        in_range("inference.max_string", inference.max_string >= 1, &inference.max_string, "1 or more")?;
        let restarts = inference.restarts;
        in_range("inference.restarts", (1..=1000).contains(&restarts), &restarts, "from 1 to 1000")?;
        let jitter = inference.jitter;
        in_range("inference.jitter", (0.0..=10.0).contains(&jitter), &jitter, "from 0 to 10")?;
        let kind = self.model.kind;
        let holds = inference.method.trains(kind);
        let methods = match kind {
            ModelKind::PcfgLa => "\"em\", \"vb\" or \"cvb\" for a PCFG with latent annotations",
            ModelKind::Adaptor | ModelKind::Pcfg | ModelKind::Dmv => {
                "\"vb\", \"svb\" or \"hastings\" for an adaptor grammar; the others are for model.kind = \"pcfg\""
            }
        };
        in_range("inference.method", holds, &"another", methods)?;
        if kind == ModelKind::PcfgLa {
            let source = &self.model.grammar;
            let holds = *source == GrammarSource::Treebank;
            in_range("model.grammar", holds, source, "left out: the rules are those of the trees")?;
            let holds = matches!(inference.start, Start::Uniform | Start::Noise);
            in_range("inference.start", holds, &"another", "\"noise\" with latent annotations")?;
            let patience = inference.patience;
            in_range("inference.patience", patience == 0, &patience, "0 with latent annotations")?;
            // Below, weights of a tree leave the range of exponents.
            let alpha = inference.alpha.unwrap_or(1.0);
            in_range("inference.alpha", alpha >= 1e-9, &alpha, "1e-9 or more with latent annotations")?;
        }
        let adapted = &self.model.adapted;
        let holds = kind == ModelKind::Dmv || adapted.is_empty();
        in_range("model.adapted", holds, &"tags", "left out, unless model.kind is \"dmv\"")?;
        let holds = adapted.is_empty() || matches!(inference.method, Method::Vb | Method::Svb);
        in_range(
            "inference.method",
            holds,
            &"another",
            "\"vb\" or \"svb\" with adapted constituents (model.adapted)",
        )?;
        let source = &self.model.grammar;
        let holds = (kind == ModelKind::Dmv) == (*source == GrammarSource::Dmv);
        in_range(
            "model.grammar",
            holds,
            source,
            "left out for model.kind = \"dmv\", and another for other kinds",
        )?;
        let holds = kind == ModelKind::Dmv || inference.start != Start::Harmonic;
        in_range("inference.start", holds, &"\"harmonic\"", "another one, unless model.kind is \"dmv\"")?;
        let offset = inference.harmonic_offset;
        in_range("inference.harmonic_offset", (0.0..=1e6).contains(&offset), &offset, "from 0 to 1000000")?;
        let smoothing = inference.harmonic_smoothing;
        let holds = smoothing > 0.0 && smoothing <= 1e6;
        in_range("inference.harmonic_smoothing", holds, &smoothing, "above 0 and at most 1000000")?;
        for stop in inference.harmonic_stop {
            let holds = stop > 0.0 && stop < 1.0;
            in_range("inference.harmonic_stop", holds, &stop, "two probabilities above 0 and below 1")?;
        }
        let is_normal = inference.prior == RulePrior::LogisticNormal;
        let holds = !is_normal || matches!(kind, ModelKind::Pcfg | ModelKind::Dmv);
        in_range(
            "inference.prior",
            holds,
            &"\"logistic-normal\"",
            "\"dirichlet\", unless model.kind is \"pcfg\" or \"dmv\"",
        )?;
        let holds = !is_normal || inference.method == Method::Vb;
        in_range("inference.method", holds, &"another", "\"vb\" with inference.prior = \"logistic-normal\"")?;
        let families = &inference.families;
        let holds = *families == FamiliesSource::None || is_normal && kind == ModelKind::Dmv;
        in_range(
            "inference.families",
            holds,
            families,
            "\"none\", unless model.kind is \"dmv\" and inference.prior \"logistic-normal\"",
        )?;
        let holds = !matches!(families, FamiliesSource::File(path) if path.as_os_str().is_empty());
        in_range("inference.families", holds, &"an empty one", "\"none\", \"ptb\", \"ud\" or a path")?;
        let n_components = inference.components.len();
        let holds = n_components == 0 || is_normal && kind == ModelKind::Dmv;
        in_range(
            "inference.components",
            holds,
            &"some",
            "[], unless model.kind is \"dmv\" and inference.prior \"logistic-normal\"",
        )?;
        let most = format!("at most {MAX_COMPONENTS} components");
        in_range("inference.components", n_components <= MAX_COMPONENTS, &n_components, &most)?;
        let holds = n_components > 0 || inference.mixture.is_empty();
        in_range("inference.mixture", holds, &"some", "[], unless there are inference.components")?;
        inference.constrained().map_err(|error| {
            let keys = match error {
                MixtureError::Limit(_) => ["inference.base_to", "inference.base_from", "inference.base_by"],
                _ => ["inference.mixture", "inference.base_to", "inference.base_from"],
            };
            let node = keys.iter().find_map(|key| root.find(key)).or(root.find("inference.components"));
            Fault::new(node.unwrap_or(root), Problem::Other(error.to_string()))
        })?;
        let subtypes = inference.subtypes;
        in_range("inference.subtypes", (1..=16).contains(&subtypes), &subtypes, "from 1 to 16")?;
        if let Some(alpha) = inference.alpha {
            let holds = alpha > 0.0 && alpha <= 1e6;
            in_range("inference.alpha", holds, &alpha, "above 0 and at most 1000000")?;
        }
        let noise = inference.noise;
        in_range("inference.noise", (0.0..1.0).contains(&noise), &noise, "0 or more and below 1")?;
        let temperatures =
            [("inference.anneal_from", inference.anneal_from), ("inference.anneal_to", inference.anneal_to)];
        for (path, temperature) in temperatures {
            let holds = (0.01..=1000.0).contains(&temperature);
            in_range(path, holds, &temperature, "from 0.01 to 1000")?;
        }
        let burn_in = inference.burn_in;
        in_range("inference.burn_in", (0.0..1.0).contains(&burn_in), &burn_in, "0 or more and below 1")?;
        in_range("inference.keep_every", inference.keep_every >= 1, &inference.keep_every, "1 or more")?;
        let of_pcfg = matches!(kind, ModelKind::Pcfg | ModelKind::Dmv);
        let holds = match inference.start {
            Start::Incremental => inference.method == Method::Hastings,
            Start::Model => inference.method == Method::Hastings || of_pcfg,
            _ => true,
        };
        in_range("inference.start", holds, &"one of method = \"hastings\"", "a start of this method")?;
        let sweeps = inference.sweeps;
        in_range("inference.sweeps", (1..=1_000_000).contains(&sweeps), &sweeps, "from 1 to 1000000")?;
        let gamma = [
            ("inference.gamma_shape", inference.gamma_shape),
            ("inference.gamma_scale", inference.gamma_scale),
        ];
        for (path, parameter) in gamma {
            in_range(path, parameter > 0.0 && parameter <= 1e9, &parameter, "above 0 and at most 1e9")?;
        }
        let from_file = matches!(inference.start, Start::Trees | Start::Model);
        let named = !inference.start_from.as_os_str().is_empty();
        in_range(
            "inference.start_from",
            !from_file || named,
            &"none",
            "the file that inference.start asks for",
        )?;
        let sample = inference.sample_shards;
        in_range("inference.sample_shards", sample >= 1, &sample, "1 or more")?;
        let power = inference.forget_power;
        in_range("inference.forget_power", (0.0..=1.0).contains(&power), &power, "from 0 to 1")?;
        let delay = inference.forget_delay;
        in_range("inference.forget_delay", (0.0..=1e9).contains(&delay), &delay, "from 0 to 1000000000")?;
        let share = self.corpus.held_out_share;
        in_range("corpus.held_out_share", (0.0..1.0).contains(&share), &share, "0 or more and below 1")?;
        let measured = share > 0.0 || !self.corpus.held_out.as_os_str().is_empty();
        let holds = inference.patience == 0 || measured;
        let patience = inference.patience;
        in_range("inference.patience", holds, &patience, "0 without held-out sentences (corpus.held_out)")?;
        let seconds = self.output.checkpoint_seconds;
        let holds = (0.0..=1e6).contains(&seconds);
        in_range("output.checkpoint_seconds", holds, &seconds, "from 0 to 1000000")?;
        let decoders = &self.output.decoders;
        let finds_arcs = |decoder: &Decoder| matches!(decoder, Decoder::Viterbi | Decoder::MbrArcs);
        let (holds, expected) = match kind {
            ModelKind::Dmv => {
                (decoders.iter().all(finds_arcs), "\"viterbi\" or \"mbr-arcs\" for a dependency model")
            }
            _ => (!decoders.contains(&Decoder::MbrArcs), "others: \"mbr-arcs\" is for model.kind = \"dmv\""),
        };
        in_range("output.decoders", holds, &"another", expected)?;
        let distinct = (0..decoders.len()).all(|at| !decoders[..at].contains(&decoders[at]));
        in_range("output.decoders", distinct, &"one named twice", "a list of different decoders")
    }
}
