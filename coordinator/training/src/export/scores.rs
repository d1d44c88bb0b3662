//! The scores of results as a table in LaTeX: a row for each decoder.

use grammaton::data::eval::segmentation::Prf;

use super::latex;
use crate::metrics::{RunResult, Scores, recommended_first, score_text};

/// The scores of a run by decoder; `None` without gold.
pub fn of_run(run: &RunResult) -> Option<String> {
    let percent = |score: Option<f64>| score_text(score.map(|score| 100.0 * score), 1);
    if !run.scores.is_empty() {
        let names = recommended_first(run.scores.keys().map(String::as_str));
        return Some(of_segmentations(
            &names.iter().map(|name| (*name, &run.scores[*name])).collect::<Vec<_>>(),
        ));
    }
    if !run.brackets.is_empty() {
        let row = |name: &str| {
            let scores = &run.brackets[name];
            let Prf { precision, recall, f1 } = scores.labelled;
            let cells = [precision, recall, f1, scores.unlabelled.f1, scores.exact].map(percent);
            [name.to_owned()].into_iter().chain(cells).collect()
        };
        let rows: Vec<Vec<String>> =
            recommended_first(run.brackets.keys().map(String::as_str)).into_iter().map(row).collect();
        return Some(latex::table(&["", "precision", "recall", "F1", "unlabelled F1", "exact"], &rows));
    }
    if !run.attachment.is_empty() {
        let row = |name: &str| {
            let scores = &run.attachment[name].all;
            vec![name.to_owned(), percent(scores.directed), percent(scores.undirected)]
        };
        let rows: Vec<Vec<String>> =
            recommended_first(run.attachment.keys().map(String::as_str)).into_iter().map(row).collect();
        return Some(latex::table(&["", "directed", "undirected"], &rows));
    }
    None
}

/// Scores of segmentations, each with its name: precision, recall and F1 of tokens, boundaries and the lexicon, in percent.
pub fn of_segmentations(scores: &[(&str, &Scores)]) -> String {
    const KINDS: [&str; 3] = ["tokens", "boundaries", "lexicon"];
    let row = |(name, scores): &(&str, &Scores)| {
        let kinds = scores.kinds();
        let of_kind =
            |kind: &str| kinds.iter().find(|(known, _)| *known == kind).map_or([None; 3], |it| it.1);
        let cells = KINDS.into_iter().flat_map(of_kind);
        let cells = cells.map(|score| score_text(score.map(|score| 100.0 * score), 1));
        [(*name).to_owned()].into_iter().chain(cells).collect()
    };
    let names: Vec<String> =
        KINDS.iter().flat_map(|kind| ["P", "R", "F1"].map(|score| format!("{kind} {score}"))).collect();
    let names: Vec<&str> = [""].into_iter().chain(names.iter().map(String::as_str)).collect();
    latex::table(&names, &scores.iter().map(row).collect::<Vec<Vec<String>>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_percent_the_recommended_decoder_first() {
        let scores = |f1| Scores { token_f1: Some(f1), ..Scores::default() };
        let by_decoder = [("viterbi".to_owned(), scores(0.5)), ("mbr".to_owned(), scores(0.625))];
        let run = RunResult { scores: by_decoder.into_iter().collect(), ..RunResult::default() };
        let table = of_run(&run).unwrap();
        let rows: Vec<&str> = table.lines().filter(|line| line.contains("&")).collect();
        assert!(rows[0].contains("tokens F1 & boundaries P"), "{table}");
        assert!(rows[1].starts_with("mbr & – & – & 62.5 &") && rows[2].starts_with("viterbi"), "{table}");
        assert_eq!(of_run(&RunResult::default()), None);
    }
}
