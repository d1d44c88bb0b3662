//! What decides on the segments of a sentence beside the decoders of one model: samples, the vote of models, shares of samples, contexts, a field.
//!
//! In: what the models of a point found in all sentences. Out: of each sentence a reading by each decider, the probabilities of the last one, and what all of them know, for new text.

use anyhow::Result;
use fleet::Map;
use grammaton::grammar::tree::Tree;
use grammaton::models::Model;
use grammaton::models::crf::Evidence;
use grammaton::models::tally::Tally;
use grammaton::models::vote::Vote;
use grammaton::saved::Segmenter;

use super::annotations::{Learned, Sentences};
use super::ballots::Ballots;
use super::contexts::ByContexts;
use super::input::Input;
use super::plan::Plan;
use super::posterior::{Posterior, Probabilities};
use super::rounds::FinishedPoint;
use super::sentence::Reading;
use super::text::Text;
use crate::boundary::BoundaryRow;
use crate::job::{Job, KeptModels};
use crate::metrics::{BOUNDARY_VOTE, CONTEXTS, CRF, MAXIMUM_MARGINAL, MBR_VOTE, SAMPLE_AVERAGE};

/// The probability of a boundary by contexts that decide in the place of a vote.
const HALF: f64 = 0.5;

/// What decides on all sentences of a text.
pub struct Deciders<'a> {
    samples: Option<Samples<'a>>,
    ballots: Ballots,
    /// There with samples, and with annotated sentences.
    vote: Option<Vote>,
    /// The least share of samples of a boundary (`output.threshold`); none without samples.
    threshold: Option<f64>,
    by_contexts: Option<ByContexts>,
    learned: Option<Learned>,
}

/// Samples of every sentence by the chain that is kept.
struct Samples<'a> {
    tallies: &'a [Tally],
    /// The most frequent tree of each sentence.
    trees: Vec<&'a str>,
}

impl<'a> Deciders<'a> {
    /// Those of `point`, whose best model is `model`. The models of its chains vote with the `ballots`.
    pub fn of(
        job: &Job,
        input: &Input,
        plan: &Plan,
        fleet: &dyn Map,
        (point, model): (&'a FinishedPoint, &Model),
        mut ballots: Ballots,
    ) -> Result<Deciders<'a>> {
        let text = &input.text;
        // Every sentence has a tree in every sample.
        let trees: Option<Vec<&str>> = point.tallies.iter().map(Tally::tree).collect();
        let trees = trees.filter(|trees| !trees.is_empty());
        let samples = trees.map(|trees| Samples { tallies: &point.tallies, trees });
        let annotated = input.annotated.as_ref().filter(|_| !input.segments.is_empty());
        let mut vote = if samples.is_some() || annotated.is_some() {
            for other in &point.chains {
                ballots.add(input, plan, fleet, other)?;
            }
            ballots.add(input, plan, fleet, model)?;
            ballots.add_samples(point);
            Some(ballots.vote(job, input)?)
        } else {
            None
        };
        let threshold = Some(job.output.threshold).filter(|&least| least > 0.0 && samples.is_some());
        let in_place = vote.as_mut().and_then(|vote| vote.in_place.take());
        let by_contexts = match (in_place, threshold.filter(|_| job.output.contexts)) {
            (Some(contexts), _) => Some(ByContexts::read(text, contexts, HALF)?),
            (None, Some(least)) => Some(ByContexts::learn(text, &ballots.posterior, least)?),
            (None, None) => None,
        };
        let mut deciders = Deciders { samples, ballots, vote, threshold, by_contexts, learned: None };
        if let (Some(annotated), Some(vote)) = (annotated, &deciders.vote) {
            let found = Sentences::of(text, |place| deciders.found(vote, place))?;
            deciders.learned = Some(found.learned(annotated));
        }
        Ok(deciders)
    }

    /// Names of the decodings, in the order of [`Deciders::readings`].
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let of_samples = self.samples.as_ref().map(|_| [SAMPLE_AVERAGE, MAXIMUM_MARGINAL]);
        of_samples
            .into_iter()
            .flatten()
            .chain(self.voted().map(|_| MBR_VOTE))
            .chain(self.threshold.map(|_| BOUNDARY_VOTE))
            .chain(self.by_contexts.as_ref().map(|_| CONTEXTS))
            .chain(self.learned.as_ref().map(|_| CRF))
    }

    /// Whether there are samples.
    pub fn has_samples(&self) -> bool {
        self.samples.is_some()
    }

    /// A sentence of `n_symbols` by all of them; constituents with `labels` are segments.
    pub fn readings(&self, place: usize, n_symbols: u32, labels: &[&str]) -> Result<Vec<Reading<'a>>> {
        let mut readings = Vec::new();
        if let Some(Samples { tallies, trees }) = &self.samples {
            let ends = Tree::parse(trees[place])?.segment_ends(|label| labels.contains(&label));
            readings.push(Reading { tree: Some(trees[place]), ..Reading::of(ends) });
            readings.push(Reading::of(tallies[place].segmentation().unwrap_or_default()));
        }
        let by_vote = self.voted().map(|vote| vote.winners[place].clone());
        let by_share = self.by_share().map(|(posterior, least)| posterior.ends(place, n_symbols, least));
        let by_contexts = self.by_contexts.as_ref().map(|found| found.reading(place).ends.clone());
        let by_field = self.learned.as_ref().map(|learned| learned.ends(place).to_vec());
        readings.extend([by_vote, by_share, by_contexts, by_field].into_iter().flatten().map(Reading::of));
        Ok(readings)
    }

    /// Probabilities of a sentence by the last of them, and of the segments that end at `ends`; `None` without any.
    pub fn probabilities(&self, place: usize, ends: &[u32]) -> Option<Probabilities> {
        match (&self.learned, &self.by_contexts, self.by_share(), self.voted()) {
            (Some(learned), ..) => Some(learned.probabilities(place)),
            (None, Some(by_contexts), ..) => Some(by_contexts.reading(place).posterior()),
            (None, None, Some((posterior, _)), _) => Some(posterior.probabilities(place, ends)),
            (None, None, None, Some(vote)) => Some(vote.means[place].probabilities(ends)),
            (None, None, None, None) => None,
        }
    }

    /// Ends of the segments of a sentence by the model of each chain; none if they do not vote.
    pub fn by_chain(&self, place: usize) -> &[Vec<u32>] {
        self.ballots.segmentations.get(place).map_or(&[][..], Vec::as_slice)
    }

    /// What was found in a sentence before something was learned from annotated ones, if something was.
    pub fn evidence(&self, place: usize) -> Option<Evidence<'_>> {
        self.learned.as_ref().map(|learned| learned.evidence(place))
    }

    /// What decides on the segments of new text: what votes, unless one model alone is kept, contexts that decide alone, and a field.
    pub fn segmenter(self, job: &Job, text: &Text) -> Segmenter {
        let Deciders { vote, by_contexts, learned, .. } = self;
        let mut segmenter = Segmenter { crf: learned.map(|learned| learned.crf), ..Segmenter::default() };
        if let Some(Vote { learned, price, contexts, .. }) =
            vote.filter(|_| job.output.models == KeptModels::All)
        {
            segmenter = Segmenter { baselines: learned, price, contexts, ..segmenter };
        }
        if let Some(ByContexts { contexts, threshold, .. }) = by_contexts {
            segmenter = Segmenter { contexts: Some(contexts), threshold, ..segmenter };
        }
        let Segmenter { baselines, contexts, crf, .. } = &segmenter;
        if !baselines.is_empty() || contexts.is_some() || crf.is_some() {
            segmenter.symbols = text.symbols.clone();
        }
        segmenter
    }

    /// The vote, if it is a decoding: annotated sentences without samples are read by a field alone.
    fn voted(&self) -> Option<&Vote> {
        self.vote.as_ref().filter(|_| self.samples.is_some())
    }

    fn by_share(&self) -> Option<(&Posterior, f64)> {
        self.threshold.map(|least| (&self.ballots.posterior, least))
    }

    /// Shares of the boundaries of a sentence and ends of its segments, as a field has them for evidence.
    fn found(&self, vote: &Vote, place: usize) -> (Vec<f64>, Vec<u32>) {
        let (shares, ends) = match (&self.by_contexts, self.by_share()) {
            (Some(by_contexts), _) => {
                let reading = by_contexts.reading(place).clone();
                (reading.probabilities, reading.ends)
            }
            (None, Some((posterior, least))) => {
                let n_symbols = vote.winners[place].last().copied().unwrap_or_default();
                let ends = posterior.ends(place, n_symbols, least);
                (posterior.probabilities(place, &ends).boundaries, ends)
            }
            (None, None) => (vote.means[place].boundaries(), vote.winners[place].clone()),
        };
        // As they are printed, so that a field can be learned from the table as well.
        (shares.into_iter().map(BoundaryRow::rounded).collect(), ends)
    }
}
