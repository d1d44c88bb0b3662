//! Jobs made from a job: of a few rounds, with the grammars that were chosen for it, the first run of a cascade, and of the points that share
//! their preparation.

use grammaton::grammar::auto::Auto;

use super::keys::KeyOfJob as _;
use super::{GrammarSource, Inference, Job, Point, to_table};
use grammaton::settings::key::Key;

/// The common part of a group of points: the grammar of a voter, and the keys that act before the rounds.
type Preparation<'j> = (Option<&'j GrammarSource>, String);

impl Job {
    /// The job that is measured: exactly `n` rounds of every run, without scores in between.
    pub fn of_rounds(&self, n: usize) -> Job {
        let mut job = self.clone();
        job.output.score_every = 0;
        for inference in
            std::iter::once(&mut job.inference).chain(job.points.iter_mut().map(|point| &mut point.inference))
        {
            (inference.max_rounds, inference.tolerance, inference.patience) = (n, Some(0.0), 0);
        }
        job
    }

    /// The job with other grammars, and points for the voters. It must have no voters yet.
    pub fn with_grammars(&self, grammar: GrammarSource, voters: Vec<GrammarSource>) -> Job {
        let mut job = self.clone();
        (job.model.grammar, job.model.voters) = (grammar, voters);
        if job.model.voter_chains == 0 && !job.model.voters.is_empty() {
            job.model.voter_chains = job.inference.restarts.div_ceil(2);
        }
        let points = std::mem::take(&mut job.points).into_iter();
        job.points = points.flat_map(|point| point.with_voters(&job.model)).collect();
        job
    }

    /// The job with the grammars that are chosen most often, for estimates, if it leaves the choice open.
    pub fn with_likely_grammars(&self) -> Job {
        if self.model.grammar != GrammarSource::Choose {
            return self.clone();
        }
        let [grammar, voter] = [Auto::COLLOC3_SYLLABLE, Auto::COLLOC_SYLLABLE].map(GrammarSource::Auto);
        self.with_grammars(grammar, vec![voter])
    }

    /// The first run of a cascade: the job with another grammar of morphemes, a quarter of the chains and half the rounds, and its own place for checkpoints.
    /// `None` if it is no cascade.
    pub fn first_of_cascade(&self) -> Option<Job> {
        let mut job = self.clone();
        if std::mem::take(&mut job.model.cascade) == 0 {
            return None;
        }
        job.model.grammar = GrammarSource::Auto(Auto::MORPH15);
        job.output.checkpoints = format!("{}/first", self.output.checkpoints());
        job.output.segments.clear(); // they are nonterminals of the other grammar
        job.corpus.remove_annotations(); // its segmentation is not printed
        for inference in
            std::iter::once(&mut job.inference).chain(job.points.iter_mut().map(|point| &mut point.inference))
        {
            inference.restarts = inference.restarts.div_ceil(4);
            inference.max_rounds = inference.max_rounds.div_ceil(2);
        }
        job.notices.clear(); // the run that follows tells them
        Some(job)
    }

    /// Groups the points that agree on everything before the rounds. Returns each group as a job with the indexes of its points, in the
    /// order of their first points.
    pub fn preparations(&self) -> Vec<(Vec<usize>, Job)> {
        let keys = Inference::keys();
        let model = self.model.model();
        let mut groups: Vec<(Preparation<'_>, Vec<usize>)> = Vec::new();
        for (at, point) in self.points.iter().enumerate() {
            let mut table = to_table(&point.inference);
            let prepares = |key: &Key| (key.prepares)(model, &point.inference) && key.acts_at(self, point);
            table.retain(|name, _| keys.iter().any(|key| key.name == name && prepares(key)));
            let common = (point.voter.as_ref(), table.to_string());
            match groups.iter_mut().find(|(known, _)| *known == common) {
                Some((_, points)) => points.push(at),
                None => groups.push((common, vec![at])),
            }
        }
        let job = |((voter, _), points): (Preparation<'_>, Vec<usize>)| {
            let of_group: Vec<Point> = points.iter().map(|&at| self.points[at].clone()).collect();
            let inference = of_group[0].inference.clone();
            let mut job = Job { inference, points: of_group, ..self.clone() };
            if let Some(voter) = voter {
                job.model.grammar = voter.clone();
                job.output.segments.clear(); // they are nonterminals of the other grammar
            }
            (points, job)
        };
        groups.into_iter().map(job).collect()
    }
}
