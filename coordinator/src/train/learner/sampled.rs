//! A run by stochastic variational Bayes: a round reads some of the shards of sentences, and all shards of strings.

use std::ops::Range;
use std::sync::Arc;

use shared::grammar::ParamId;
use shared::grammar::groups::Groups;
use shared::models::Params;
use shared::models::adaptor::Stick;
use shared::num::Wide;
use shared::train;
use shared::train::round::{Ask, Step, Totals};
use shared::train::stochastic::Schedule;
use shared::work::task::Expectation;

use super::{Beginning, State, alpha, first, first_of_sticks, is_adapted, sticks};
use crate::job::{InferenceTable, Method};
use crate::train::plan::Plan;

/// The run, and its round under way.
pub struct Sampled {
    trainer: Trainer,
    weights: Arc<Vec<Wide>>,
    sample: Totals,
    strings: Totals,
}

enum Trainer {
    Sticks(train::adaptor_svb::Trainer),
    Pcfg(train::pcfg_svb::Trainer),
}

/// Which of so many shards of sentences the rounds of a run read.
fn schedule(inference: &InferenceTable, shards: usize, restart: usize) -> Schedule {
    let schedule = Schedule {
        shards,
        sample: inference.sample_shards,
        delay: inference.forget_delay,
        power: inference.forget_power,
        first: inference.first_rounds,
        seed: inference.seed,
        run: restart as u64,
    };
    Schedule { first: or_epoch(schedule.first, &schedule), ..schedule }
}

/// Rounds; those of an epoch if nobody says how many.
fn or_epoch(rounds: usize, schedule: &Schedule) -> usize {
    if rounds == 0 { schedule.epoch() } else { rounds }
}

/// Says so if a run over so many shards of sentences ends before it learns from what it read.
pub fn notice(inference: &InferenceTable, shards: usize) -> Option<String> {
    let InferenceTable { method, max_rounds, .. } = *inference;
    if method != Method::Svb {
        return None;
    }
    let Schedule { first, .. } = schedule(inference, shards, 1);
    (max_rounds <= first).then(|| {
        format!(
            "all {max_rounds} rounds have the weights that training starts with, as the first {first} do; raise inference.max_rounds \
             to several times that, or set inference.first_rounds"
        )
    })
}

impl Sampled {
    /// A new run, or one that goes on.
    pub fn new(plan: &Plan, beginning: &Beginning<'_>, state: Option<State>) -> Result<Sampled, String> {
        let (grammar, lexicon) = (plan.grammar.value.clone(), plan.lexicon.value.clone());
        let Beginning { inference, restart, .. } = *beginning;
        let schedule = schedule(inference, plan.sentence_shards().count(), restart);
        let trainer = if is_adapted(plan) {
            let start = first_of_sticks(beginning, &grammar, &lexicon).map_err(|error| error.to_string())?;
            let (settings, every) = (
                train::adaptor::Settings { start, ..sticks(inference) },
                or_epoch(inference.select_every, &schedule),
            );
            Trainer::Sticks(match state {
                Some(State::SampledSticks(state)) => {
                    train::adaptor_svb::Trainer::resume(grammar, lexicon, settings, schedule, every, state)
                }
                Some(_) => return Err("it is of another method or kind of model".to_owned()),
                None => train::adaptor_svb::Trainer::new(grammar, lexicon, settings, schedule, every),
            })
        } else {
            let (groups, start) = (Groups::new(&grammar, &lexicon), first(beginning));
            Trainer::Pcfg(match state {
                Some(State::SampledPcfg(state)) => {
                    train::pcfg_svb::Trainer::resume(groups, start, schedule, state)
                }
                Some(_) => return Err("it is of another method or kind of model".to_owned()),
                None => {
                    let alpha = alpha(&grammar, &lexicon, inference);
                    train::pcfg_svb::Trainer::new(groups, alpha, start, schedule)
                }
            })
        };
        let (sample, strings) = (Totals::new(0), Totals::new(0));
        Ok(Sampled { trainer, weights: Arc::default(), sample, strings })
    }

    /// What it knows.
    pub fn state(&self) -> State {
        match &self.trainer {
            Trainer::Sticks(trainer) => State::SampledSticks(trainer.state().clone()),
            Trainer::Pcfg(trainer) => State::SampledPcfg(trainer.state().clone()),
        }
    }

    /// Rounds that counted.
    pub fn rounds(&self) -> usize {
        match &self.trainer {
            Trainer::Sticks(trainer) => trainer.state().rounds,
            Trainer::Pcfg(trainer) => trainer.state().rounds,
        }
    }

    /// The shards that the next round reads, ascending.
    pub fn shards(&self, plan: &Plan) -> Vec<usize> {
        let mut shards = match &self.trainer {
            Trainer::Sticks(trainer) => trainer.sampled(),
            Trainer::Pcfg(trainer) => trainer.sampled(),
        };
        shards.extend((0..plan.shards.len()).filter(|&at| plan.shards[at].strings.is_some()));
        shards
    }

    /// Begins a round.
    pub fn begin(&mut self) {
        self.weights = Arc::new(match &self.trainer {
            Trainer::Sticks(trainer) => trainer.weights(),
            Trainer::Pcfg(trainer) => trainer.weights(),
        });
        let n_params = self.weights.len();
        (self.sample, self.strings) = (Totals::new(n_params), Totals::new(n_params));
    }

    /// What the round's shards are asked.
    pub fn ask(&self) -> Ask {
        let losses = matches!(&self.trainer, Trainer::Sticks(trainer) if trainer.wants_losses());
        Ask::Expect { weights: self.weights.clone(), losses }
    }

    /// Takes in what was found for a shard, whose index is `params`, and which is of these `strings` if it is of strings; shards come
    /// in order.
    pub fn add(&mut self, strings: Option<&Range<u32>>, params: &[ParamId], found: Expectation) {
        let totals = if strings.is_some() { &mut self.strings } else { &mut self.sample };
        totals.add(strings, params, found);
    }

    /// Ends a round to which all its shards were added.
    pub fn finish(&mut self) -> Step {
        let [sample, strings] =
            [&mut self.sample, &mut self.strings].map(|totals| std::mem::replace(totals, Totals::new(0)));
        match &mut self.trainer {
            Trainer::Sticks(trainer) => trainer.absorb(sample, strings),
            Trainer::Pcfg(trainer) => trainer.absorb(sample),
        }
    }

    /// What was learned.
    pub fn params(&self) -> Params {
        match &self.trainer {
            Trainer::Sticks(trainer) => Params::Adaptor(trainer.params().clone()),
            Trainer::Pcfg(trainer) => Params::Pcfg(trainer.params()),
        }
    }

    /// The sticks, if there are such.
    pub fn sticks(&self) -> &[Stick] {
        match &self.trainer {
            Trainer::Sticks(trainer) => &trainer.params().sticks,
            Trainer::Pcfg(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_ends_with_its_first_rounds_is_told() {
        let inference = |max_rounds| InferenceTable {
            method: Method::Svb,
            sample_shards: 4,
            max_rounds,
            ..InferenceTable::default()
        };
        assert_eq!(notice(&inference(6), 20), None);
        let told = notice(&inference(5), 20).unwrap();
        assert!(told.contains("as the first 5 do; raise inference.max_rounds"), "{told}");
        assert_eq!(notice(&InferenceTable { first_rounds: 4, ..inference(5) }, 20), None);
        assert_eq!(notice(&InferenceTable { method: Method::Vb, ..inference(5) }, 20), None);
    }
}
