//! New text as a model file reads it: by its first model, and by the vote of all.

use grammaton::models::Trained;
use grammaton::models::baselines::Baseline;
use grammaton::models::crf::contexts::Contexts;
use grammaton::models::decode::Decoder;
use grammaton::models::decode::n_best::Distinct;
use grammaton::models::segments::{Probabilities, Segments};
use grammaton::saved::Segmenter;
use grammaton::saved::reader::{Asked, Criterion, ModelReader, Reading, Unread};
use grammaton::{Corpus, Fit, Grammar, Method, Model};

use crate::support::{assert_all_close, assert_close};

/// A model of words of these letters.
fn trained(letters: &str, text: &str) -> Model {
    let letters = letters.chars().map(|letter| format!("1 1 Letter --> {letter}\n")).collect::<String>();
    let rules = "1 1 S --> Word\n1 1 S --> Word S\nWord --> Letters\n1 1 Letters --> Letter\n1 1 Letters --> Letter Letters\n";
    let grammar: Grammar = format!("{rules}{letters}").parse().unwrap();
    Fit::new(&grammar, Method::vb()).run(&Corpus::of_tokens(text).unwrap()).unwrap()
}

/// A file of several models.
fn file(models: &[Model]) -> Model {
    let others = models[1..].iter().map(|model| model.model.of_grammar().unwrap().clone()).collect();
    Model { voters: others, ..models[0].clone() }
}

/// Three models, of which the last one lacks a letter.
fn models() -> [Model; 3] {
    [
        trained("abc", "a b a b c\na b c a b\nc a b\n"),
        trained("abc", "b c a\nb c b c a a\na b c\na a\n"),
        trained("ab", "a b b a\nb a a b\na b\n"),
    ]
}

const TEXT: &str = "a b c a b\nc c b\na b b a\na\nc a b a b c a\nb a b a\n";

fn read(model: &Model, criterion: Criterion, text: &str, closed: bool) -> Vec<Result<Reading, Unread>> {
    let corpus = Corpus::of_tokens(text).unwrap();
    let asked = Asked { probabilities: true, closed, ..Asked::default() };
    let reader = ModelReader::new(model, criterion, asked).unwrap();
    reader.read(&corpus, 0..corpus.sentences.len()).unwrap()
}

#[test]
fn the_vote_of_one_model_is_its_mbr() {
    for model in models() {
        for closed in [false, true] {
            let [vote, mbr] = [Criterion::Vote, Criterion::First(Decoder::Mbr)]
                .map(|criterion| read(&model, criterion, TEXT, closed));
            assert_eq!(vote, mbr);
        }
    }
}

/// Law: probabilities are means over the models that have an analysis, the segmentation is the best by them, and the sentence has the probability of the mixture.
#[test]
fn votes_are_means_of_the_models_and_a_model_without_an_analysis_has_none() {
    let models = models();
    let votes = read(&file(&models), Criterion::Vote, TEXT, false);
    let alone = models.each_ref().map(|model| read(model, Criterion::First(Decoder::Mbr), TEXT, false));
    let mut n_new = 0;
    for (at, vote) in votes.iter().enumerate() {
        let vote = vote.as_ref().unwrap();
        let found: Vec<&Reading> = alone.iter().filter_map(|readings| readings[at].as_ref().ok()).collect();
        assert_eq!(found.len(), if TEXT.lines().nth(at).unwrap().contains('c') { 2 } else { 3 });
        let Probabilities { boundaries, segments } = vote.probabilities.as_ref().unwrap();
        let n = found.len() as f64;
        let mean: Vec<f64> = (0..boundaries.len())
            .map(|at| {
                found.iter().map(|it| it.probabilities.as_ref().unwrap().boundaries[at]).sum::<f64>() / n
            })
            .collect();
        assert_all_close(boundaries, &mean, 1e-7, "boundaries");
        assert!(segments.iter().all(|share| (0.0..=1.0).contains(share)));
        let mixture: f64 = found.iter().map(|it| it.log_probability.unwrap().exp()).sum::<f64>() / 3.0;
        assert_close(vote.log_probability.unwrap(), mixture.ln(), 1e-12, "mixture");
        n_new += usize::from(found.iter().any(|it| it.ends != vote.ends));
    }
    assert!(n_new > 0, "some model is outvoted");
}

/// Law: a baseline without weight changes nothing, and with more than all models its segmentation wins, with its probabilities.
#[test]
fn baselines_vote_by_weight() {
    let all = models();
    let symbols = ["c", "b", "a"].map(str::to_owned).to_vec();
    // The words "ca" and "b".
    let learned = Baseline::Puddle.learn(&[vec![0, 2], vec![0, 2], vec![1], vec![0, 2, 1]]);
    let text = TEXT.to_owned() + "c a c a b\n";
    let with = |weight| {
        let mut saved = file(&all);
        let baselines = vec![(learned.clone(), weight)];
        saved.segmenter = Segmenter { symbols: symbols.clone(), baselines, ..Segmenter::default() };
        read(&saved, Criterion::Vote, &text, false)
    };
    let without = read(&file(&all), Criterion::Vote, &text, false);
    assert_eq!(with(0.0), without);
    // Contexts that cut everywhere, with as much weight as the models.
    let mut saved = file(&all);
    let cut: Vec<Vec<u32>> = (0..99).map(|at| vec![at % 3, (at + 1) % 3, (at / 3) % 3]).collect();
    let contexts = Some(Contexts::learn(cut.iter().map(|word| (&word[..], &[1.0, 1.0][..]))));
    saved.segmenter = Segmenter { symbols: symbols.clone(), contexts, ..Segmenter::default() };
    let n_segments = |readings: &[Result<Reading, Unread>]| -> usize {
        readings.iter().map(|reading| reading.as_ref().unwrap().ends.len()).sum()
    };
    assert!(n_segments(&read(&saved, Criterion::Vote, &text, false)) > n_segments(&without));
    let strong = with(1e6);
    let ends = |readings: &[Result<Reading, Unread>], at: usize| readings[at].as_ref().unwrap().ends.clone();
    // "ca", "ca", "b".
    assert_eq!(ends(&strong, 6), [2, 4, 5]);
    for (strong, without) in strong.iter().zip(&without) {
        let [strong, without] = [strong, without].map(|reading| reading.as_ref().unwrap());
        let boundaries = &strong.probabilities.as_ref().unwrap().boundaries;
        let certain = |(at, share): (usize, &f64)| {
            (share - f64::from(u8::from(strong.ends.contains(&(at as u32 + 1))))).abs() < 1e-5
        };
        assert!(boundaries.iter().enumerate().all(certain), "{boundaries:?}");
        assert_eq!(strong.log_probability, without.log_probability);
    }
}

/// Law: the first of the n best is what is read without them, no two are equal, and probabilities are means over the models that have an analysis, which sum to one.
#[test]
fn the_n_best_begin_with_what_is_read_and_have_the_probability_of_the_mixture() {
    let models = models();
    let corpus = Corpus::of_tokens(TEXT).unwrap();
    let n_best = |model: &Model, criterion, n| {
        let n_best = Some((n, Distinct::Segmentations));
        let reader = ModelReader::new(model, criterion, Asked { n_best, ..Asked::default() }).unwrap();
        let read = reader.read(&corpus, 0..corpus.sentences.len()).unwrap();
        read.into_iter()
            .map(|reading| reading.unwrap_or_else(|unread| panic!("{unread:?}")))
            .collect::<Vec<_>>()
    };
    let two = &models[..2];
    let alone = [0, 1].map(|at| n_best(&two[at], Criterion::First(Decoder::Mbr), 1000));
    for criterion in [Criterion::Vote, Criterion::First(Decoder::Mbr), Criterion::First(Decoder::Viterbi)] {
        let all = n_best(&file(two), criterion, 1000);
        for (at, reading) in all.iter().enumerate() {
            let ranked = &reading.n_best;
            assert_eq!(ranked[0].ends, reading.ends);
            for (rank, one) in ranked.iter().enumerate() {
                assert!(ranked[..rank].iter().all(|other| other.ends != one.ends));
                if criterion == Criterion::Vote {
                    let share = |by: &[Reading]| {
                        by[at].n_best.iter().find(|it| it.ends == one.ends).map(|it| it.probability)
                    };
                    let mean = alone.iter().filter_map(|by| share(by)).sum::<f64>() / 2.0;
                    assert_close(one.probability, mean, 1e-6, "the mean");
                }
            }
            let sum: f64 = ranked.iter().map(|one| one.probability).sum();
            match criterion {
                Criterion::First(Decoder::Viterbi) => {
                    assert!(sum < 1.0 && ranked.is_sorted_by(|a, b| a.probability >= b.probability));
                }
                _ => assert_close(sum, 1.0, 1e-6, "all segmentations"),
            }
        }
        for n in [1, 2] {
            for (few, all) in n_best(&file(two), criterion, n).iter().zip(&all) {
                assert_eq!(few.n_best[..], all.n_best[..n.min(all.n_best.len())]);
                assert_eq!(few.ends, all.ends);
            }
        }
    }
}

#[test]
fn answers_depend_neither_on_threads_nor_on_the_parts_of_a_text() {
    let model = file(&models());
    let text: String = (0..700).map(|at| TEXT.lines().nth(at * 7 % 6).unwrap().to_owned() + "\n").collect();
    let in_pool = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| read(&model, Criterion::Vote, &text, false))
    };
    let all = in_pool(1);
    assert_eq!(all, in_pool(3));
    let by_line: Vec<_> =
        text.lines().take(20).flat_map(|line| read(&model, Criterion::Vote, line, false)).collect();
    assert_eq!(all[..20], by_line);
}

#[test]
fn sentences_that_no_model_can_read_are_named() {
    let models = models();
    let corpus = Corpus::of_tokens("a b\na d\nc\n").unwrap();
    let reader = ModelReader::new(&file(&models), Criterion::Vote, Asked::default()).unwrap();
    let read = reader.read(&corpus, 0..3).unwrap();
    let symbol = read[1].as_ref().unwrap_err().symbol().expect("it is unknown");
    assert_eq!((symbol.line, &*symbol.symbol), (2, "d"));
    assert!(read[0].as_ref().is_ok_and(|reading| reading.probabilities.is_none()) && read[2].is_ok());
    // A closed model has an analysis only of its words.
    let closed = ModelReader::new(&models[0], Criterion::Vote, Asked { closed: true, ..Asked::default() });
    let closed = closed.unwrap();
    let corpus = Corpus::of_tokens("c c c c\n").unwrap();
    let read = closed.read(&corpus, 0..1).unwrap();
    assert!(read[0].is_ok() || read[0] == Err(Unread::NoAnalysis));
    assert!(
        ModelReader::new(&models[0], Criterion::Crf, Asked::default()).is_none(),
        "it has learned nothing"
    );
}

/// Law: a sentence of which no model has an analysis is read by baselines, or by contexts, as these alone would; without them it is not.
#[test]
fn what_votes_beside_models_reads_new_symbols() {
    let models = models();
    let symbols = ["a", "b", "c"].map(str::to_owned).to_vec();
    let words: Vec<Vec<u32>> = (0..9).map(|at| vec![at % 3, 1]).collect();
    let contexts = Contexts::learn(words.iter().map(|word| (&word[..], &[0.9][..])));
    let puddle = Baseline::Puddle.learn(&[vec![0, 1], vec![2]]);
    let text = "a b c\nd a b\nb d b\n";
    let numbers = [vec![0, 1, 2], vec![3, 0, 1], vec![1, 3, 1]];
    let alone = |threshold: f64| {
        let (symbols, contexts) = (symbols.clone(), Some(contexts.clone()));
        Segmenter { symbols, contexts, threshold, ..Segmenter::default() }
    };
    let baselines = vec![(puddle.clone(), 0.5)];
    let by_baseline = Segmenter { symbols: symbols.clone(), baselines, ..Segmenter::default() };
    type Alone<'a> = &'a dyn Fn(&[u32]) -> Vec<u32>;
    let cases: [(Segmenter, Alone<'_>); 3] = [
        (alone(0.25), &|symbols| contexts.read(symbols, 0.25).ends),
        (alone(0.0), &|symbols| contexts.segments(symbols).best()),
        (by_baseline, &|symbols| puddle.segment(symbols)),
    ];
    for (segmenter, expected) in cases {
        let saved = Model { segmenter, ..file(&models) };
        let criterion = Criterion::of(&saved);
        let readings = read(&saved, criterion, text, false);
        let known = readings[0].as_ref().unwrap();
        assert!(known.unread.is_none() && known.log_probability.is_some());
        for (reading, (symbols, line)) in readings[1..].iter().zip(numbers[1..].iter().zip(2..)) {
            let reading = reading.as_ref().unwrap();
            assert_eq!(reading.ends, expected(symbols), "{criterion:?}");
            assert_eq!(reading.log_probability, None);
            let unknown = reading.unread.as_ref().and_then(Unread::symbol).expect("the reason is there");
            assert_eq!((unknown.line, &*unknown.symbol), (line, "d"));
            let shares = &reading.probabilities.as_ref().unwrap().boundaries;
            assert!(shares.len() == 2 && shares.iter().all(|share| (0.0..=1.0).contains(share)));
        }
        assert!(read(&saved, Criterion::First(Decoder::Mbr), text, false)[1].is_err());
        // The n best of a vote have probabilities by models.
        let asked = Asked { n_best: Some((2, Distinct::Segmentations)), ..Asked::default() };
        let reader = ModelReader::new(&saved, criterion, asked).unwrap();
        let ranked = reader.read(&Corpus::of_tokens(text).unwrap(), 0..3).unwrap();
        assert_eq!(
            (reader.reads_all(), ranked[1].is_ok()),
            (criterion != Criterion::Vote, criterion != Criterion::Vote)
        );
        assert!(ranked.iter().flatten().all(|reading| !reading.n_best.is_empty()));
    }
}

#[test]
fn files_keep_all_models_and_the_default_reads_by_all() {
    let models = models();
    let [one, all] = [&models[..1], &models].map(file);
    assert_eq!(Criterion::of(&one), Criterion::First(Decoder::Viterbi));
    assert_eq!(Criterion::of(&all), Criterion::Vote);
    let read_back = Model::from_bytes(&all.to_bytes(), "model.bin".as_ref()).unwrap();
    assert_eq!(read_back, all);
    let Trained::Grammar(first) = &all.model else { panic!("a model of a grammar") };
    assert_eq!(Some(first), one.model.of_grammar());
    // One that does not hold together is refused.
    let mut broken = all;
    broken.voters[1].segments.push(grammaton::grammar::SymbolId(99));
    let refusal = Model::from_bytes(&broken.to_bytes(), "model.bin".as_ref()).unwrap_err().to_string();
    assert!(refusal.contains("segments are not nonterminals"), "{refusal}");
}

#[test]
fn best_segmentations_of_means_are_those_of_the_models_if_they_agree() {
    let model = &models()[0];
    let twice = file(&[model.clone(), model.clone()]);
    let [alone, twice] = [model, &twice].map(|model| read(model, Criterion::Vote, TEXT, false));
    for (alone, twice) in alone.iter().zip(&twice) {
        assert_eq!(alone.as_ref().unwrap().ends, twice.as_ref().unwrap().ends);
    }
    assert_eq!(Segments::mean(&[]).best(), [0u32; 0]);
}
