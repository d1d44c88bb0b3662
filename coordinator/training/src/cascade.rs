//! The cascade: a first run with another grammar of morphemes finds the affixes that the run knows (Eskander, Rambow & Yang 2016).
//!
//! In: a job with `model.cascade`. Out: the affixes that its first run uses most. The first run is computed by the fleet of the
//! run, has checkpoints of its own, and writes no results.
//!
//! Law: the result is that of the job without `cascade` whose grammar is a file with these affixes as rules. Categories with affixes that
//! were found stay adapted, as in MorphAGram; those with affixes from files do not.

use anyhow::Result;
use fleet::Map;
use grammaton::grammar::auto::Auto;
use grammaton::models::Trained;

use crate::events::{Observer, RunEvent};
use crate::job::{FoundAffixes, Job};
use crate::model::{SavedModel, top};
use crate::train::checkpoint::Checkpoints;
use crate::train::group::Inputs;
use crate::train::train;

/// The first run of a cascade.
pub struct First {
    job: Job,
    checkpoints: Checkpoints,
}

impl First {
    /// The first run of `job`, if it is a cascade; `open` takes the place of its checkpoints.
    pub fn of(job: &Job, open: impl FnOnce(&Job) -> Result<Checkpoints>) -> Result<Option<First>> {
        let first = job.first_of_cascade();
        first.map(|job| Ok(First { checkpoints: open(&job)?, job })).transpose()
    }

    /// Its checkpoints.
    pub fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }

    /// Runs it, and returns the affixes that it uses most.
    pub fn run(&mut self, n: usize, fleet: &dyn Map, observer: &mut dyn Observer) -> Result<FoundAffixes> {
        let grammar = &self.job.model.grammar;
        observer.on(&RunEvent::Notice(format!("first run of the cascade, with {grammar}")))?;
        let inputs = Inputs::load(&self.job)?;
        let outcome = train(&self.job, &inputs, fleet, &mut self.checkpoints, observer)?;
        let saved = self.job.corpus.saved(outcome.model);
        let [prefixes, suffixes] = Auto::AFFIXES.map(|affixes| most_used(&saved, affixes, n));
        observer.on(&RunEvent::Notice(format!(
            "the second run knows the prefixes {} and the suffixes {}",
            listed(&prefixes),
            listed(&suffixes)
        )))?;
        Ok(FoundAffixes { prefixes, suffixes })
    }
}

/// The `n` strings of a nonterminal with the most expected uses.
fn most_used(saved: &SavedModel, nonterminal: &str, n: usize) -> Vec<String> {
    let Trained::Grammar(model) = &saved.model else { return Vec::new() };
    let mut sticks = model.lexicon.sticks.iter();
    let stick = sticks.position(|stick| model.grammar.name(stick.symbol) == nonterminal);
    let strings = stick.map(|at| top(saved, at, n)).unwrap_or_default();
    strings.into_iter().map(|entry| entry.string).collect()
}

/// The first ones of affixes, for a notice.
fn listed(affixes: &[String]) -> String {
    const SHOWN: usize = 10;
    match affixes.len() {
        0 => "(none)".to_owned(),
        n if n > SHOWN => format!("{}, … ({n} in all)", affixes[..SHOWN].join(", ")),
        _ => affixes.join(", "),
    }
}
