//! A run by stochastic variational Bayes: a round reads some of the shards of sentences, and all shards of strings.

use shared::adaptor::{Stick, svb, vb};
use shared::model::Params;
use shared::num::Wide;
use shared::pcfg::{self, Groups};
use shared::round::{Step, Totals};
use shared::shard::Shard;
use shared::stochastic::Schedule;
use shared::task::{Expectation, Work};

use super::{Beginning, State, alpha, first, first_of_sticks, is_adapted, sticks};
use crate::train::plan::Plan;

/// The run, and its round under way.
pub struct Sampled<'a> {
    plan: &'a Plan,
    trainer: Trainer,
    weights: Vec<Wide>,
    sample: Totals,
    strings: Totals,
}

enum Trainer {
    Sticks(svb::Trainer),
    Pcfg(pcfg::svb::Trainer),
}

impl<'a> Sampled<'a> {
    /// A new run, or one that goes on.
    pub fn new(
        plan: &'a Plan,
        beginning: &Beginning<'_>,
        state: Option<State>,
    ) -> Result<Sampled<'a>, String> {
        let (grammar, lexicon) = (plan.grammar.value.clone(), plan.lexicon.value.clone());
        let Beginning { inference, run, .. } = *beginning;
        let schedule = Schedule {
            shards: plan.shards.iter().filter(|shard| is_sentences(&shard.shard.value)).count(),
            sample: inference.sample_shards,
            delay: inference.forget_delay,
            power: inference.forget_power,
            seed: inference.seed,
            run: run as u64,
        };
        let trainer = if is_adapted(plan) {
            let start = first_of_sticks(beginning, &grammar, &lexicon);
            let (settings, every) = (vb::Settings { start, ..sticks(inference) }, inference.select_every);
            Trainer::Sticks(match state {
                Some(State::SampledSticks(state)) => {
                    svb::Trainer::resume(grammar, lexicon, settings, schedule, every, state)
                }
                Some(_) => return Err("it is of another method or kind of model".to_owned()),
                None => svb::Trainer::new(grammar, lexicon, settings, schedule, every),
            })
        } else {
            let (groups, start) = (Groups::new(&grammar, &lexicon), first(beginning));
            Trainer::Pcfg(match state {
                Some(State::SampledPcfg(state)) => pcfg::svb::Trainer::resume(groups, start, schedule, state),
                Some(_) => return Err("it is of another method or kind of model".to_owned()),
                None => {
                    let alpha = alpha(&grammar, &lexicon, inference);
                    pcfg::svb::Trainer::new(groups, alpha, start, schedule)
                }
            })
        };
        let (sample, strings) = (Totals::new(0), Totals::new(0));
        Ok(Sampled { plan, trainer, weights: Vec::new(), sample, strings })
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
    pub fn shards(&self) -> Vec<usize> {
        let mut shards = match &self.trainer {
            Trainer::Sticks(trainer) => trainer.sampled(),
            Trainer::Pcfg(trainer) => trainer.sampled(),
        };
        let all = 0..self.plan.shards.len();
        shards.extend(all.filter(|&at| !is_sentences(&self.plan.shards[at].shard.value)));
        shards
    }

    /// Begins a round.
    pub fn begin(&mut self) {
        self.weights = match &self.trainer {
            Trainer::Sticks(trainer) => trainer.weights(),
            Trainer::Pcfg(trainer) => trainer.weights(),
        };
        let n_params = self.weights.len();
        (self.sample, self.strings) = (Totals::new(n_params), Totals::new(n_params));
    }

    /// What one of the round's shards is asked.
    pub fn work(&self, shard: usize) -> Work {
        let params = &self.plan.shards[shard].params;
        let weights = params.iter().map(|param| self.weights[param.index()]).collect();
        let losses = matches!(&self.trainer, Trainer::Sticks(trainer) if trainer.wants_losses());
        Work::Expect { weights, losses }
    }

    /// Takes in the answer of a shard; shards come in order.
    pub fn add(&mut self, shard: usize, found: Expectation) {
        let planned = &self.plan.shards[shard];
        let totals = match is_sentences(&planned.shard.value) {
            true => &mut self.sample,
            false => &mut self.strings,
        };
        totals.add(&planned.shard.value, &planned.params, found);
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

fn is_sentences(shard: &Shard) -> bool {
    matches!(shard, Shard::Sentences(_))
}
