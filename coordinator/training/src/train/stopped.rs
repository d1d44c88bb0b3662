//! The error of a run that was stopped: its last round, and whether it can be resumed.

use std::fmt::{self, Display};

use fleet::FleetError;

/// A run stopped because its job was cancelled.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Stopped {
    /// The last complete round; 0 before the first.
    pub round: usize,
    /// State from which the next run can resume.
    pub kept: Resumable,
}

/// Resumable state of a stopped run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resumable {
    /// A checkpoint after its last round.
    Checkpoint,
    /// No state: the run was still preparing.
    Nothing,
    /// No state: the job writes no checkpoints.
    Off,
    /// No state: the checkpoint cannot be written, for this reason.
    Failed(String),
}

impl Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.round {
            0 => f.write_str("stopped before the first round; ")?,
            round => write!(f, "stopped after round {round}; ")?,
        }
        match &self.kept {
            Resumable::Checkpoint => f.write_str("resume with --resume"),
            Resumable::Nothing => f.write_str("nothing is kept"),
            Resumable::Off => f.write_str("nothing is kept, as output.keep_checkpoints is 0"),
            Resumable::Failed(reason) => {
                write!(f, "nothing is kept, as the checkpoint cannot be written: {reason}")
            }
        }
    }
}

/// Whether the cause of the error is that the job was cancelled.
pub fn is_cancellation(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| matches!(cause.downcast_ref(), Some(FleetError::Cancelled)))
}

/// Whether a run or its preparation ended because its job was cancelled.
pub fn is_cancelled(error: &anyhow::Error) -> bool {
    error.is::<Stopped>() || is_cancellation(error)
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn the_line_says_where_it_stopped_and_what_is_kept() {
        let line = |round, kept| Stopped { round, kept }.to_string();
        assert_eq!(line(213, Resumable::Checkpoint), "stopped after round 213; resume with --resume");
        assert_eq!(line(0, Resumable::Nothing), "stopped before the first round; nothing is kept");
        assert_eq!(
            line(2, Resumable::Off),
            "stopped after round 2; nothing is kept, as output.keep_checkpoints is 0"
        );
        assert_eq!(
            line(2, Resumable::Failed("out/1.ckpt: no space".to_owned())),
            "stopped after round 2; nothing is kept, as the checkpoint cannot be written: out/1.ckpt: no space"
        );
    }

    #[test]
    fn a_cancellation_is_known_under_any_context() {
        let cancelled = anyhow::Error::new(FleetError::Cancelled).context("round 3").context("training");
        assert!(is_cancellation(&cancelled));
        let other: anyhow::Result<()> = Err(FleetError::Stopped).context("the job was cancelled");
        assert!(!is_cancellation(&other.unwrap_err()));
    }
}
