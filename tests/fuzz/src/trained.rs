//! A small job, trained as `grammaton train` does: the source of seeds of models and checkpoints, and the job that resumes from
//! hostile checkpoints.

use std::fs;
use std::path::PathBuf;

use fleet::Inline;
use tempfile::TempDir;
use training::events::All;
use training::job::Job;
use training::outcome::Outcome;
use training::train::checkpoint::Checkpoints;
use training::train::group::Inputs;
use training::train::train;

/// A job in a temporary folder.
pub struct Trained {
    /// Folder of its checkpoints.
    pub checkpoints: PathBuf,
    folder: TempDir,
    job: Job,
    inputs: Inputs,
}

impl Trained {
    /// A job of few rounds over few sentences, with two runs and sticks that grow and shrink.
    pub fn new() -> Trained {
        let folder = tempfile::tempdir().expect("a temporary folder can be created");
        let text = "[model]\ngrammar = \"grammar.gr\"\n[corpus]\npath = \"corpus.txt\"\n\
            [inference]\ntruncation = 30\nmax_rounds = 4\nrestarts = 2\ntolerance = 0\ngrow_from = 4\ngrow_by = 3\n\
            [output]\ncheckpoint_seconds = 0\nkeep_checkpoints = 100\n";
        let write =
            |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it takes files");
        write("grammar.gr", crate::GRAMMARS[0]);
        write("corpus.txt", "ab a\nab ab b\na b ab\nbb ab\n");
        let job = Job::parse(text, "job.toml", folder.path(), &[]).expect("the text is a job");
        let inputs = Inputs::load(&job).expect("its files are in order");
        Trained { checkpoints: job.output.checkpoints().into(), folder, job, inputs }
    }

    /// Trains from the start, and writes a checkpoint of every round.
    pub fn train(&self) -> Outcome {
        self.go_on(false).expect("the job is in order")
    }

    /// Resumes from the existing checkpoints, and writes no more of them.
    pub fn resume(&self) -> anyhow::Result<Outcome> {
        self.go_on(true)
    }

    fn go_on(&self, resume: bool) -> anyhow::Result<Outcome> {
        let mut output = self.job.output.clone();
        if resume {
            output.keep_checkpoints = 0;
        }
        let mut checkpoints = Checkpoints::open(&output, resume)?;
        train(&self.job, &self.inputs, &Inline::default(), &mut checkpoints, &mut All(Vec::new()))
    }

    /// The job.
    pub fn job(&self) -> &Job {
        debug_assert!(self.folder.path().exists());
        &self.job
    }
}
