//! Points of a job that share what is made before the rounds: input, strings, plan.
//!
//! Keys such as `truncation` act before the first round. Points that differ in one of them are prepared apart, each group as the
//! job that it would be by itself; points that do not are prepared once.

use anyhow::Result;
use fleet::Inline;
use grammaton::grammar::Grammar;

use super::held_out::HeldOutShards;
use super::input::Input;
use super::plan::Plan;
use super::prepare::lines_without_forest;
use crate::job::{Job, OnUnparsable};

/// Training data of all points of a job.
pub struct Inputs {
    /// Groups in the order of their first points; at least one.
    pub groups: Vec<Group>,
}

/// Points that agree on everything that acts before the rounds.
pub struct Group {
    /// The job with these points alone.
    pub job: Job,
    /// Their numbers in the whole job, ascending.
    pub points: Vec<usize>,
    /// Their training data.
    pub input: Input,
}

impl Inputs {
    /// Reads the files of `job`.
    pub fn load(job: &Job) -> Result<Inputs> {
        let load = |(points, job): (Vec<usize>, Job)| {
            let mut input = Input::load(&job)?;
            if job.corpus.on_unparsable == OnUnparsable::Skip {
                let lines = lines_without_forest(&Inline::default(), &input)?;
                if !lines.is_empty() {
                    input = Input::load_without(&job, &lines)?;
                }
            }
            Ok(Group { job, points, input })
        };
        Ok(Inputs { groups: job.preparations().into_iter().map(load).collect::<Result<_>>()? })
    }

    /// Reads the files of `job` without the sentences that have symbols which the grammar lacks. Returns these sentences too, by
    /// line and description.
    pub fn load_known(job: &Job) -> Result<(Inputs, Vec<(u32, String)>)> {
        let mut unknown = Vec::new();
        let load = |(points, mut job): (Vec<usize>, Job)| {
            job.corpus.on_unparsable = OnUnparsable::Skip;
            let input = Input { skipped: None, ..Input::load(&job)? };
            unknown.extend(input.unknown(&job)?);
            Ok(Group { job, points, input })
        };
        let groups = job.preparations().into_iter().map(load).collect::<Result<_>>()?;
        Ok((Inputs { groups }, unknown))
    }

    /// Input of the first point. All points read the same corpus.
    pub fn first(&self) -> &Input {
        &self.groups[0].input
    }

    /// The grammar of every group; `None` for trees.
    pub fn grammars(&self) -> Vec<Option<&Grammar>> {
        self.groups.iter().map(|group| group.input.grammar()).collect()
    }

    /// The number of the group of every run of the whole job.
    pub fn group_of_run(&self) -> Vec<usize> {
        let of_group = |(at, group): (usize, &Group)| {
            let points = group.points.iter().zip(&group.job.points);
            points.map(move |(&number, point)| (number, point.inference.restarts, at)).collect::<Vec<_>>()
        };
        let mut points: Vec<(usize, usize, usize)> =
            self.groups.iter().enumerate().flat_map(of_group).collect();
        points.sort_unstable();
        points.into_iter().flat_map(|(_, restarts, at)| std::iter::repeat_n(at, restarts)).collect()
    }

    /// Notices for the user about the files, each once.
    pub fn notices(&self) -> Vec<String> {
        let mut notices: Vec<String> = Vec::new();
        for notice in
            self.groups.iter().flat_map(|Group { input, .. }| input.notices.iter().chain(&input.skipped))
        {
            if !notices.contains(notice) {
                notices.push(notice.clone());
            }
        }
        notices
    }
}

/// A group that is ready for its rounds.
pub struct Prepared<'a> {
    /// The points.
    pub group: &'a Group,
    /// The strings and shards.
    pub plan: Plan,
    /// Sentences to measure with.
    pub held_out: HeldOutShards,
}

impl<'a> Prepared<'a> {
    /// A group with its plan.
    pub fn new(group: &'a Group, plan: Plan) -> Prepared<'a> {
        let input = &group.input;
        let held_out = HeldOutShards::new(input.held_out.clone(), input.tokens_per_symbol());
        Prepared { group, plan, held_out }
    }

    /// Its training data.
    pub fn input(&self) -> &'a Input {
        &self.group.input
    }

    /// The place of a point of the whole job among the group's.
    pub fn place(&self, point: usize) -> Option<usize> {
        self.group.points.binary_search(&point).ok()
    }
}

/// The group of a point.
pub fn of_point<'p, 'a>(prepared: &'p [Prepared<'a>], point: usize) -> &'p Prepared<'a> {
    let of_point = prepared.iter().find(|prepared| prepared.place(point).is_some());
    of_point.expect("every point of a job is in one group")
}
