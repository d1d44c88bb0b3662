//! The verdict on a result: what is known of its quality, in a sentence or two, with a grade, and what to do.
//!
//! In: [`Evidence`], from the summary of a job. Out: a [`Verdict`], for the report, the end of the command and `summary.json`. With gold the score counts, beside
//! those of trivial analyses; without, whether the chains agree and how sure they are. Training that has not ended well makes every verdict doubtful.

use crate::certainty::Certainty;
use crate::metrics::{
    AttachmentByDecoder, BracketsByDecoder, Ending, Grade, MIXED, NOT_MIXED, RunResult, ScoresByDecoder,
    Summary, Verdict, recommended,
};
use grammaton::settings::method::Method;

/// A score that is better than its best baseline by less than this is doubtful.
const NEAR: f64 = 0.05;
/// Share of the boundaries on which chains differ from which a segmentation is doubtful.
const MANY: f64 = 0.25;
/// Likewise the share of unsure boundaries: baselines and contexts that vote make even right ones less than certain.
const MOSTLY: f64 = 0.5;

/// What is known of a result.
#[derive(Clone, PartialEq, Debug)]
pub struct Evidence<'a> {
    /// The main score against gold, if there is gold.
    pub score: Option<Score<'a>>,
    /// How sure its boundaries are, of a segmentation with probabilities.
    pub certainty: Option<Certainty>,
    /// How training ended.
    pub training: Training,
}

/// A score of the recommended decoder.
#[derive(Clone, PartialEq, Debug)]
pub struct Score<'a> {
    /// What is scored.
    pub kind: Kind,
    /// Whether it is of `corpus.test`.
    pub is_of_test: bool,
    /// The decoder.
    pub decoder: &'a str,
    /// Its value.
    pub value: f64,
    /// Names of the trivial analyses and their values.
    pub baselines: Vec<(&'static str, f64)>,
}

/// Kinds of score.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// F1 of segments.
    Tokens,
    /// F1 of brackets without labels.
    Brackets,
    /// Directed accuracy of heads.
    Heads,
}

/// How training ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Training {
    /// Chains of a sampler.
    Chains {
        /// Their number.
        n: usize,
        /// R-hat of the objective; `None` of one chain and of a few rounds.
        r_hat: Option<f64>,
    },
    /// Rounds until the objective hardly changes.
    Rounds {
        /// Their number.
        n: usize,
        /// Why they ended.
        ending: Ending,
    },
    /// A fixed number of rounds over samples of the corpus.
    Stochastic,
}

/// The verdict on the result in `summary`, which `method` trained.
pub fn of(summary: &Summary, method: Method) -> Verdict {
    judge(&Evidence::of(&summary.result, method))
}

/// The verdict by what is known.
pub fn judge(evidence: &Evidence<'_>) -> Verdict {
    let Evidence { score, certainty, training } = evidence;
    let has_score = score.is_some();
    let quality = match (score, certainty) {
        (Some(score), _) => vec![of_score(score)],
        (None, Some(certainty)) => of_certainty(certainty),
        (None, None) => Vec::new(),
    };
    let findings: Vec<Verdict> = quality.into_iter().chain([of_training(training, has_score)]).collect();
    let sentences = |part: fn(&Verdict) -> &str| {
        let all: Vec<&str> = findings.iter().map(part).filter(|text| !text.is_empty()).collect();
        all.join(" ")
    };
    Verdict {
        grade: findings.iter().map(|found| found.grade).max().unwrap_or_default(),
        text: sentences(|found| &found.text),
        advice: sentences(|found| &found.advice),
    }
}

fn good(text: String) -> Verdict {
    Verdict { grade: Grade::Good, text, advice: String::new() }
}

fn doubtful(text: String, advice: &str) -> Verdict {
    Verdict { grade: Grade::Doubtful, text, advice: advice.to_owned() }
}

fn of_score(score: &Score<'_>) -> Verdict {
    let Score { kind, is_of_test, decoder, value, baselines } = score;
    let (what, advice) = match kind {
        Kind::Tokens => ("token F1", "Try another model.grammar, or give more text or annotated lines."),
        Kind::Brackets => ("unlabelled bracket F1", "Give more trees, or train longer."),
        Kind::Heads => (
            "attachment",
            "Try other starts, with inference.start and inference.restarts, or inference.rules.",
        ),
    };
    let subject = if *is_of_test { format!("On corpus.test, {what}") } else { capitalised(what) };
    let subject = format!("{subject} is {value:.3} ({decoder})");
    let best = baselines.iter().map(|(_, value)| *value).reduce(f64::max);
    let Some(best) = best else { return good(format!("{subject}.")) };
    let listed: Vec<String> = baselines.iter().map(|(name, value)| format!("{value:.3} ({name})")).collect();
    let listed = listed.join(" and ");
    let (grade, relation) = match value - best {
        gain if gain <= 0.0 => (Grade::Bad, "not above"),
        gain if gain < NEAR => (Grade::Doubtful, "hardly above"),
        _ => (Grade::Good, "above"),
    };
    let of_baselines = if baselines.len() == 1 { "the baseline" } else { "the baselines" };
    let text = format!("{subject}, {relation} {of_baselines}, {listed}.");
    let advice = if grade == Grade::Good { String::new() } else { advice.to_owned() };
    Verdict { grade, text, advice }
}

fn of_certainty(certainty: &Certainty) -> Vec<Verdict> {
    let percent = |share: f64| format!("{:.1}\u{a0}%", 100.0 * share);
    let agreement = certainty.disputed_share().map(|disputed| {
        let agreed = percent(1.0 - disputed);
        let text =
            format!("The models of the {} chains agree on {agreed} of the boundaries.", certainty.chains);
        if disputed < MANY {
            good(text)
        } else {
            doubtful(text, "Run more chains, with a larger inference.restarts.")
        }
    });
    let sureness = match certainty.unsure_share() {
        Some(unsure) => {
            let text =
                format!("{} of the boundaries are unsure (probability from 0.1 to 0.9).", percent(unsure));
            if unsure < MOSTLY {
                good(text)
            } else {
                doubtful(text, "Annotate the lines that `grammaton suggest` chooses.")
            }
        }
        None => doubtful("No boundary is probable.".to_owned(), "Try another model.grammar."),
    };
    agreement.into_iter().chain([sureness]).collect()
}

fn of_training(training: &Training, has_score: bool) -> Verdict {
    const LONGER: &str = "Run longer, with a larger inference.max_rounds.";
    let without_gold = |text: String| {
        if has_score { good(String::new()) } else { good(format!("{text}; without gold no score is known.")) }
    };
    match *training {
        Training::Chains { n: 0 | 1, .. } if has_score => good(String::new()),
        Training::Chains { n: 0 | 1, .. } => doubtful(
            "It is a single chain, and others may find something else.".to_owned(),
            "Run several chains, with a larger inference.restarts.",
        ),
        Training::Chains { r_hat: None, .. } => {
            doubtful("The chains are too short to say whether they have mixed.".to_owned(), LONGER)
        }
        Training::Chains { r_hat: Some(r_hat), .. } if r_hat <= MIXED => {
            good(format!("The chains have mixed (R-hat {r_hat:.3})."))
        }
        Training::Chains { r_hat: Some(r_hat), .. } if r_hat <= NOT_MIXED => {
            good(format!("The chains have nearly mixed (R-hat {r_hat:.3})."))
        }
        Training::Chains { r_hat: Some(r_hat), .. } => {
            doubtful(format!("The chains have not mixed (R-hat {r_hat:.3})."), LONGER)
        }
        Training::Rounds { n, ending: Ending::Converged } => {
            without_gold(format!("Training converged after {n} rounds"))
        }
        Training::Rounds { n, ending: Ending::Patience } => {
            without_gold(format!("Training ended after {n} rounds, as held-out sentences say"))
        }
        Training::Rounds { n, ending: Ending::MaxRounds } => {
            doubtful(format!("Training ended after {n} rounds, before it converged."), LONGER)
        }
        Training::Stochastic => without_gold("Training ran all its rounds".to_owned()),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

impl<'a> Evidence<'a> {
    /// What `result`, which `method` trained, says. Scores of `corpus.test` come before those of the corpus.
    fn of(result: &'a RunResult, method: Method) -> Evidence<'a> {
        let RunResult { scores, brackets, attachment, test, .. } = result;
        let of_test =
            test.as_ref().and_then(|test| main_score(&test.scores, &test.brackets, &test.attachment));
        let of_test = of_test.map(|score| Score { is_of_test: true, ..score });
        let training = if method.is_sampler() {
            Training::Chains { n: result.bounds.len(), r_hat: result.r_hat }
        } else if method.is_stochastic() && result.ending == Ending::MaxRounds {
            Training::Stochastic
        } else {
            Training::Rounds { n: result.rounds_run, ending: result.ending }
        };
        Evidence {
            score: of_test.or_else(|| main_score(scores, brackets, attachment)),
            certainty: result.certainty,
            training,
        }
    }
}

/// The score of the recommended decoder; `None` without gold.
fn main_score<'a>(
    scores: &'a ScoresByDecoder,
    brackets: &'a BracketsByDecoder,
    attachment: &'a AttachmentByDecoder,
) -> Option<Score<'a>> {
    let known = |baselines: &[(&'static str, Option<f64>)]| -> Vec<(&'static str, f64)> {
        baselines.iter().filter_map(|&(name, value)| Some((name, value?))).collect()
    };
    let score = |kind, decoder: &'a str, value: Option<f64>, baselines: &[_]| {
        Some(Score { kind, is_of_test: false, decoder, value: value?, baselines: known(baselines) })
    };
    if let Some(decoder) = recommended(scores.keys().map(String::as_str)) {
        let found = &scores[decoder];
        return score(Kind::Tokens, decoder, found.token_f1, &found.baselines());
    }
    if let Some(decoder) = recommended(brackets.keys().map(String::as_str)) {
        let found = &brackets[decoder];
        let baselines = [("right-branching trees", found.right_branching)];
        return score(Kind::Brackets, decoder, found.unlabelled.f1, &baselines);
    }
    let decoder = recommended(attachment.keys().map(String::as_str))?;
    let found = &attachment[decoder].all;
    let baselines = [("attach-right", found.attach_right), ("attach-left", found.attach_left)];
    score(Kind::Heads, decoder, found.directed, &baselines)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONVERGED: Training = Training::Rounds { n: 26, ending: Ending::Converged };

    fn score(kind: Kind, value: f64, baselines: &[f64]) -> Option<Score<'static>> {
        let names = ["every symbol as a segment", "every sentence as a segment"];
        let baselines = names.into_iter().zip(baselines.iter().copied()).collect();
        Some(Score { kind, is_of_test: false, decoder: "mbr", value, baselines })
    }

    fn chains(n: usize, r_hat: impl Into<Option<f64>>) -> Training {
        Training::Chains { n, r_hat: r_hat.into() }
    }

    fn certainty(sure: u64, unsure: u64, shared: u64, disputed: u64) -> Option<Certainty> {
        Some(Certainty { sure, unsure, chains: 3, shared, disputed })
    }

    fn verdict(
        score: Option<Score<'_>>,
        certainty: Option<Certainty>,
        training: Training,
    ) -> (Grade, String, String) {
        let Verdict { grade, text, advice } = judge(&Evidence { score, certainty, training });
        (grade, text, advice)
    }

    #[track_caller]
    fn assert_verdict(found: (Grade, String, String), grade: Grade, text: &str, advice: &str) {
        assert_eq!((found.0, found.1.as_str(), found.2.as_str()), (grade, text, advice));
    }

    #[test]
    fn with_gold_the_score_is_beside_its_baselines() {
        let of = |value| verdict(score(Kind::Tokens, value, &[0.3, 0.125]), None, CONVERGED);
        let baselines =
            "the baselines, 0.300 (every symbol as a segment) and 0.125 (every sentence as a segment).";
        let other = "Try another model.grammar, or give more text or annotated lines.";
        for (value, grade, relation, advice) in [
            (0.745, Grade::Good, "above", ""),
            (0.36, Grade::Good, "above", ""),
            (0.34, Grade::Doubtful, "hardly above", other),
            (0.3, Grade::Bad, "not above", other),
            (0.1, Grade::Bad, "not above", other),
        ] {
            assert_verdict(
                of(value),
                grade,
                &format!("Token F1 is {value:.3} (mbr), {relation} {baselines}"),
                advice,
            );
        }
        let (_, text, advice) = verdict(score(Kind::Heads, 0.2, &[0.25]), None, CONVERGED);
        assert_eq!(
            text,
            "Attachment is 0.200 (mbr), not above the baseline, 0.250 (every symbol as a segment)."
        );
        assert!(advice.contains("inference.start"), "{advice}");
        let (grade, text, _) = verdict(score(Kind::Brackets, 0.2, &[]), None, CONVERGED);
        assert_eq!((grade, &text[..]), (Grade::Good, "Unlabelled bracket F1 is 0.200 (mbr)."));
        let of_test = score(Kind::Tokens, 0.5, &[]).map(|score| Score { is_of_test: true, ..score });
        assert_eq!(verdict(of_test, None, CONVERGED).1, "On corpus.test, token F1 is 0.500 (mbr).");
    }

    #[test]
    fn without_gold_the_chains_speak() {
        let of = |certainty, training| verdict(None, certainty, training);
        let agree = "The models of the 3 chains agree on 90.0\u{a0}% of the boundaries.";
        let sure = "5.0\u{a0}% of the boundaries are unsure (probability from 0.1 to 0.9).";
        let mixed = "The chains have mixed (R-hat 1.004).";
        assert_verdict(
            of(certainty(95, 5, 90, 10), chains(3, 1.004)),
            Grade::Good,
            &format!("{agree} {sure} {mixed}"),
            "",
        );
        let (grade, _, advice) = of(certainty(40, 60, 90, 10), chains(3, 1.0));
        assert_eq!(
            (grade, &advice[..]),
            (Grade::Doubtful, "Annotate the lines that `grammaton suggest` chooses.")
        );
        let (grade, _, advice) = of(certainty(95, 5, 60, 40), chains(3, 1.0));
        assert_eq!(
            (grade, &advice[..]),
            (Grade::Doubtful, "Run more chains, with a larger inference.restarts.")
        );
        assert_verdict(
            of(certainty(0, 0, 0, 0), chains(1, None)),
            Grade::Doubtful,
            "No boundary is probable. It is a single chain, and others may find something else.",
            "Try another model.grammar. Run several chains, with a larger inference.restarts.",
        );
        assert_verdict(
            of(None, CONVERGED),
            Grade::Good,
            "Training converged after 26 rounds; without gold no score is known.",
            "",
        );
    }

    /// Law: chains that have not mixed, or are too short to say so, and training that did not converge, make every verdict doubtful at best, with advice.
    #[test]
    fn training_that_has_not_ended_well_makes_doubts() {
        let unmet = [
            chains(2, None),
            chains(2, 1.11),
            chains(2, f64::NAN),
            chains(2, f64::INFINITY),
            Training::Rounds { n: 5, ending: Ending::MaxRounds },
        ];
        let met = [
            chains(2, 0.99),
            chains(2, NOT_MIXED),
            CONVERGED,
            Training::Rounds { n: 5, ending: Ending::Patience },
            Training::Stochastic,
        ];
        let scores = [score(Kind::Tokens, 0.9, &[0.1]), None];
        for score in &scores {
            for certainty in [certainty(99, 1, 99, 1), None] {
                for training in unmet {
                    let (grade, _, advice) = verdict(score.clone(), certainty, training);
                    assert_eq!(
                        (grade, &advice[..]),
                        (Grade::Doubtful, "Run longer, with a larger inference.max_rounds.")
                    );
                }
                for training in met {
                    let (grade, text, advice) = verdict(score.clone(), certainty, training);
                    assert_eq!((grade, &advice[..]), (Grade::Good, ""), "{text}");
                    assert!(text.ends_with('.') && !text.contains("  "), "{text}");
                }
            }
        }
        // A score below its baseline stays bad.
        assert_eq!(verdict(score(Kind::Tokens, 0.1, &[0.1]), None, unmet[1]).0, Grade::Bad);
        assert_eq!(
            verdict(scores[0].clone(), None, chains(1, None)).0,
            Grade::Good,
            "with gold one chain is enough"
        );
        assert!(verdict(None, None, chains(2, 1.05)).1.contains("nearly mixed (R-hat 1.050)"));
    }

    #[test]
    fn scores_of_unseen_sentences_come_first() {
        use crate::metrics::{Scores, TestScores};
        let of = |value: f64| -> ScoresByDecoder {
            let scores =
                Scores { token_f1: Some(value), token_f1_every_symbol: Some(0.25), ..Scores::default() };
            [("mbr".to_owned(), scores), ("viterbi".to_owned(), Scores::default())].into()
        };
        let result = RunResult { scores: of(0.75), ending: Ending::Converged, ..RunResult::default() };
        let text = |result: &RunResult| judge(&Evidence::of(result, Method::Vb)).text;
        assert_eq!(
            text(&result),
            "Token F1 is 0.750 (mbr), above the baseline, 0.250 (every symbol as a segment)."
        );
        let test = Some(TestScores { scores: of(0.5), ..TestScores::default() });
        let result = RunResult { test, ..result };
        assert!(
            text(&result).starts_with("On corpus.test, token F1 is 0.500 (mbr), above"),
            "{}",
            text(&result)
        );
        let evidence = |method| Evidence::of(&RunResult::default(), method).training;
        assert_eq!(evidence(Method::Hastings), chains(0, None));
        assert_eq!(evidence(Method::Svb), Training::Stochastic);
        assert_eq!(evidence(Method::Em), Training::Rounds { n: 0, ending: Ending::MaxRounds });
    }
}
