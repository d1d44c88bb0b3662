//! Training in one process: that threads change nothing, and that what cannot be trained is refused with a reason.

use grammaton::data::corpus::{Options, ReadError};
use grammaton::settings::inference::Start;
use grammaton::{Corpus, Decoder, Fit, Grammar, Inference, Method, Model, Tree};

const GRAMMAR: &str = "1 1 S --> Word\n1 1 S --> Word S\nWord --> Ls\n1 1 Ls --> L\n1 1 Ls --> L Ls\n\
    1 1 L --> a\n1 1 L --> b\n1 1 L --> c\n";
const TEXT: &str = "abc ab\nab ab cab\nba\ncab cab ab\nab\nbab ab abc\n";

fn grammar() -> Grammar {
    GRAMMAR.parse().unwrap()
}

fn corpus(text: &str) -> Corpus {
    Corpus::read(text.as_bytes(), "text", &Options::default()).unwrap().0
}

/// Law: the number of threads changes no bit, and the best of several runs is no worse than the first.
#[test]
fn threads_change_no_bit_and_restarts_make_nothing_worse() {
    let (grammar, corpus) = (grammar(), corpus(TEXT));
    for method in [Method::vb(), Method::svb(), Method::hastings()] {
        let learn = |threads: usize, restarts: usize| -> (Model, f64) {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut last = std::collections::BTreeMap::new();
            let fit = Fit::new(&grammar, method.clone()).restarts(restarts).max_rounds(6).shard_symbols(4);
            let fit = fit.on_round(|round| {
                last.insert(round.run, round.objective);
            });
            let model = pool.install(|| fit.run(&corpus)).unwrap();
            (model, last.into_values().fold(f64::NEG_INFINITY, f64::max))
        };
        let (one, few) = (learn(1, 1), learn(4, 1));
        assert_eq!(one, few, "{:?}", method.method);
        assert!(learn(2, 3).1 >= one.1, "{:?}", method.method);
    }
}

#[test]
fn a_model_is_saved_whole_and_reads_other_text() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("words.model");
    std::fs::write(&file, "what was there before").unwrap();
    let model = Fit::new(&grammar(), Method::vb()).run(&corpus(TEXT)).unwrap();
    model.save(&file).unwrap();
    assert_eq!(Model::load(&file).unwrap(), model);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left");
    assert!(model.save(folder.path().join("no/such/folder")).is_err());
    let found = model.parse(&corpus("abcab\nxab\n"), Decoder::Mbr).unwrap();
    assert_eq!((found[0].ends.last(), found[0].tree.is_none()), (Some(&5), true));
    assert_eq!(found[1].to_string(), "xab", "a symbol that the model lacks");
    assert_eq!(found[1].log_probability, f64::NEG_INFINITY);
    let tree = model.parse(&corpus("abcab\n"), Decoder::Viterbi).unwrap().remove(0).tree.unwrap();
    assert_eq!(tree.terminals().collect::<String>(), "abcab");
}

/// Law: a sentence that occurs several times has one tree to start from, as it has one line.
#[test]
fn trees_to_start_from_are_one_a_line() {
    let grammar: Grammar = "1 1 S --> L\n1 1 S --> L S\n1 1 L --> a\n1 1 L --> b\n".parse().unwrap();
    let mut corpus = corpus("ab\nb\n");
    corpus.occurrences = vec![3, 1];
    let trees = ["(S (L a) (S (L b)))", "(S (L b))"].map(|tree| Tree::parse(tree).unwrap());
    let fit = || Fit::new(&grammar, Method::hastings()).max_rounds(2);
    assert!(fit().start_from_trees(trees.to_vec()).run(&corpus).is_ok());
    let error = fit().start_from_trees(trees[..1].to_vec()).run(&corpus).unwrap_err();
    assert_eq!(error.to_string(), "the start needs a tree for each sentence, in their order");
}

/// Law: every number out of its range is refused before anything is trained, with its key, itself and the range.
#[test]
fn numbers_out_of_range_are_refused_by_name() {
    let mut n_ranges = 0;
    for key in Inference::keys() {
        let Some(range) = key.range else { continue };
        for outside in [-1e12, 1e12].into_iter().filter(|&number| !range.contains(number)) {
            let mut settings = serde_json::to_value(Method::vb()).unwrap();
            let value = settings.get_mut(key.name).unwrap();
            let outside =
                if value.is_u64() { serde_json::json!(outside.max(0.0) as u64) } else { outside.into() };
            *value = if value.is_array() { serde_json::json!([outside, outside]) } else { outside };
            let Ok(settings) = serde_json::from_value::<Inference>(settings) else { continue };
            let Err(misfit) = settings.check_ranges() else { continue };
            assert_eq!((misfit.key, misfit.expected), (key.name, range.to_string()));
            n_ranges += 1;
        }
    }
    assert!(n_ranges > 30, "{n_ranges} numbers out of range");
    let not_a_number = Inference { rho: f64::NAN, ..Method::vb() };
    let refusal = Fit::new(&grammar(), not_a_number).run(&corpus(TEXT)).unwrap_err();
    assert_eq!(refusal.to_string(), "inference.rho: found NaN, expected from -10 to 10");
}

#[test]
fn what_cannot_be_trained_is_refused_with_a_reason() {
    let refusal = |inference: Inference, text: &str| {
        Fit::new(&grammar(), inference).run(&corpus(text)).unwrap_err().to_string()
    };
    assert!(refusal(Method::em(), TEXT).starts_with("inference.method: found another, expected \"vb\""));
    let start = Inference { start: Start::Model, ..Method::hastings() };
    assert_eq!(refusal(start, TEXT), "the start needs a model (Fit::start_from_model)");
    let missing = refusal(Method::vb(), "ab\nabx\n");
    assert!(missing.contains("text:2") && missing.contains('x'), "{missing}");
    let only_two: Grammar = "1 1 S --> Word\nWord --> L L\n1 1 L --> a\n1 1 L --> b\n".parse().unwrap();
    let error = Fit::new(&only_two, Method::vb()).run(&corpus("ab\nba\naba\n")).unwrap_err();
    assert!(error.to_string().starts_with("text:3: the grammar cannot derive this sentence"), "{error}");
    let error = Fit::new(&grammar(), Method::vb()).segments(&["Worm"]).run(&corpus(TEXT)).unwrap_err();
    assert!(error.to_string().contains("`Worm`") && error.to_string().contains("Word"), "{error}");
}

/// Law: a file that looks like something else than sentences is not read as sentences.
#[test]
fn a_file_in_another_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text.txt");
    let open = |text: &str| {
        std::fs::write(&file, text).unwrap();
        Corpus::open(&file)
    };
    assert_eq!(open(TEXT).unwrap().sentences.len(), 6);
    for text in
        ["1\tab ab\n2\tba\n3\tabc\n", "(S (N a) (V b))\n(S (N b) (V a))\n", "{\"a\": 1}\n{\"b\": 2}\n"]
    {
        assert!(matches!(open(text), Err(ReadError::OtherFormat { .. })), "{text:?}: {:?}", open(text));
    }
}
