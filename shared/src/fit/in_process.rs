//! Tasks on the threads of this process.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::Cause;
use crate::grammar::ParamId;
use crate::methods::{Basis, Data};
use crate::prepare::{ShardSet, Workers};
use crate::train::trainer::{self, Failure, Read, Trainer};
use crate::work::engine::{ComputeError, Engine};
use crate::work::shard::Shard;
use crate::work::task::{Answer, Language, Named, Task, Work};

/// The shards of sentences, and an engine for them.
pub struct InProcess {
    engine: Engine,
    shards: Vec<Named<Shard>>,
    sentence_lines: SentenceLines,
    folder: PathBuf,
}

/// Where the sentences of shards come from, for messages.
#[derive(Clone, Debug, Default)]
pub struct SentenceLines {
    /// Name of the corpus.
    pub source_name: String,
    /// The first line of every sentence, by shard and position in it.
    pub lines: Vec<Vec<u32>>,
}

/// Why a round was not computed.
pub enum RoundError {
    /// A task cannot be computed.
    Compute(ComputeError),
    /// An answer was refused.
    Failure(Failure),
}

/// Tasks of a thread at a time: answers wait for each other, and are in memory meanwhile.
const PER_THREAD: usize = 4;

impl InProcess {
    /// Computes on these shards of sentences or trees, keeping at most `memory` bytes of forests.
    pub fn new(shards: Vec<Named<Shard>>, sentence_lines: SentenceLines, memory: usize) -> InProcess {
        InProcess {
            engine: Engine::with_memory(memory),
            shards,
            sentence_lines,
            folder: std::env::temp_dir(),
        }
    }

    /// Computes a round of `trainer`, which has begun.
    pub fn round(&self, trainer: &mut dyn Trainer, shards: &Shards) -> Result<(), RoundError> {
        let unreadable = |error| RoundError::Failure(Failure::Method(error));
        let ask = trainer.ask(shards).map_err(unreadable)?;
        let language = match &shards.basis {
            Basis::Language(language) => Some(language.clone()),
            Basis::Treebank(_) => None,
        };
        let task = |&at: &usize| {
            let InMemory { shard, params, .. } = &shards.all[at];
            Task {
                language: language.clone(),
                shard: shard.clone(),
                work: ask.work(at, params, None),
                further: Vec::new(),
            }
        };
        self.each(&trainer.shards(shards), task, |&shard, answer| {
            let answer = answer.map_err(RoundError::Compute)?;
            if trainer.add(shards, shard..shard + 1, answer).map_err(unreadable)? {
                Ok(())
            } else {
                Err(RoundError::Failure(Failure::WrongAnswer { shard }))
            }
        })
    }

    /// Answers the task of every item, and passes the answers in the order of the items.
    fn each<T: Sync, E>(
        &self,
        items: &[T],
        task: impl Fn(&T) -> Task + Sync,
        mut each: impl FnMut(&T, Result<Answer, ComputeError>) -> Result<(), E>,
    ) -> Result<(), E> {
        for items in items.chunks(PER_THREAD * rayon::current_num_threads()) {
            let answers: Vec<_> = items.par_iter().map(|item| self.engine.run(&task(item))).collect();
            for (item, answer) in items.iter().zip(answers) {
                each(item, answer)?;
            }
        }
        Ok(())
    }
}

impl Workers for InProcess {
    type Error = Cause;
    type Params = Arc<Vec<ParamId>>;

    fn compute(
        &self,
        language: &Language,
        on: ShardSet<'_>,
        work: Work,
        each: &mut dyn FnMut(usize, Answer) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        let shards: Vec<Named<Shard>> = match on {
            ShardSet::Sentences => self.shards.clone(),
            ShardSet::SomeSentences(numbers) => {
                numbers.iter().map(|&shard| self.shards[shard].clone()).collect()
            }
            ShardSet::Strings(strings) => {
                strings.iter().map(|strings| Named::new(Shard::Strings(strings.clone()))).collect()
            }
        };
        let shards: Vec<(usize, Named<Shard>)> = shards.into_iter().enumerate().collect();
        let task = |(_, shard): &(usize, Named<Shard>)| Task {
            language: Some(language.clone()),
            shard: shard.clone(),
            work: work.clone(),
            further: Vec::new(),
        };
        self.each(&shards, task, |&(at, _), answer| each(at, answer?))
    }

    fn keep(&self, params: Vec<ParamId>) -> Result<Arc<Vec<ParamId>>, Cause> {
        Ok(Arc::new(params))
    }

    fn accept(&self, unparsable: &[(usize, u32)]) -> Result<(), Cause> {
        let Some(&(shard, item)) = unparsable.first() else { return Ok(()) };
        let SentenceLines { source_name, lines } = &self.sentence_lines;
        let line = lines.get(shard).and_then(|lines| lines.get(item as usize)).copied().unwrap_or_default();
        Err(Cause::Underivable { source_name: source_name.clone(), line })
    }

    fn folder(&self) -> &Path {
        &self.folder
    }
}

/// The shards of a run, in memory.
pub struct Shards {
    /// Grammar and strings, or treebank.
    pub basis: Basis,
    all: Vec<InMemory>,
}

struct InMemory {
    shard: Named<Shard>,
    params: Arc<Vec<ParamId>>,
    strings: Option<Range<u32>>,
}

impl Shards {
    /// No shards yet.
    pub fn new(basis: Basis) -> Shards {
        Shards { basis, all: Vec::new() }
    }

    /// Shards that all have the same parameters.
    pub fn alike(basis: Basis, shards: Vec<Named<Shard>>, params: Vec<ParamId>) -> Shards {
        let params = Arc::new(params);
        let all = shards.into_iter().map(|shard| InMemory { shard, params: params.clone(), strings: None });
        Shards { basis, all: all.collect() }
    }

    /// Adds a shard with the parameters that it touches, and its strings if it is of strings.
    pub fn push(&mut self, shard: Named<Shard>, params: Arc<Vec<ParamId>>, strings: Option<Range<u32>>) {
        self.all.push(InMemory { shard, params, strings });
    }
}

impl trainer::Shards for Shards {
    fn len(&self) -> usize {
        self.all.len()
    }

    fn params(&self, shard: usize) -> Read<Arc<Vec<ParamId>>> {
        Ok(self.all[shard].params.clone())
    }

    fn strings(&self, shard: usize) -> Option<Range<u32>> {
        self.all[shard].strings.clone()
    }
}

impl Data for Shards {
    fn basis(&self) -> &Basis {
        &self.basis
    }

    fn shard(&self, shard: usize) -> Read<Arc<Shard>> {
        Ok(self.all[shard].shard.value.clone())
    }
}
