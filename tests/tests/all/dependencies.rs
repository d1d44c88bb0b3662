//! Dependency trees, from treebank files to scores.

use std::fs;
use std::path::{Path, PathBuf};

use grammaton::data::dependency::{Document, Punctuation, Sentence, Tags, select};
use grammaton::data::eval::Source;
use grammaton::data::eval::dependencies::score;
use grammaton_tests::folder::Folder;
use serde_json::Value;

/// Two sentences, and a sentence of punctuation only; `loudly` depends on a full stop.
const GOLD: &str = "# text = The dog barks. Loudly!\n\
    1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n\
    2\tdog\tdog\tNOUN\tNN\t_\t3\tnsubj\t_\t_\n\
    3\tbarks\tbark\tVERB\tVBZ\t_\t0\troot\t_\t_\n\
    4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_\n\
    5\tLoudly\tloudly\tADV\tRB\t_\t4\tadvmod\t_\t_\n\
    6\t!\t!\tPUNCT\t.\t_\t5\tpunct\t_\t_\n\
    \n\
    1\t...\t...\tPUNCT\t:\t_\t0\troot\t_\t_\n\
    \n\
    1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_\n\
    1\tDo\tdo\tAUX\tVB\t_\t0\troot\t_\t_\n\
    2\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_\n";

/// The sentences without punctuation; four of six heads are right, and one edge is reversed.
const FOUND: &str = "The\tDT\t0\ndog\tNN\t1\nbarks\tVBZ\t0\nLoudly\tRB\t3\n\nDo\tVB\t0\nn't\tRB\t1\n";

/// Heads that are wrong in the second sentence only.
const OTHER: &str = "The\tDT\t2\ndog\tNN\t3\nbarks\tVBZ\t0\nLoudly\tRB\t3\n\nDo\tVB\t2\nn't\tRB\t0\n";

fn folder() -> Folder {
    Folder::new(&[("gold.conllu", GOLD), ("found.tsv", FOUND), ("other.tsv", OTHER)])
}

fn refused(folder: &Folder, args: &[&str], expected: &str) {
    let printed = folder.run(&[&["eval", "dependencies"], args].concat());
    assert_eq!((printed.code, printed.out.as_str()), (2, ""), "{}", printed.log);
    assert_eq!(printed.log.trim_end(), format!("error: {expected}"));
}

#[test]
fn an_output_is_scored_without_punctuation() {
    let folder = folder();
    let text = folder.grammaton(&["eval", "dependencies", "gold.conllu", "found.tsv"]);
    let expected = [
        "              directed  undirected     exact  attach-right  attach-left     words  sentences",
        "up to 10        0.6667      0.8333    0.5000        0.3333       0.5000         6          2",
        "  95 %       .500–1.00   .750–1.00 .000–1.00",
        "up to 20        0.6667      0.8333    0.5000        0.3333       0.5000         6          2",
        "  95 %       .500–1.00   .750–1.00 .000–1.00",
        "all             0.6667      0.8333    0.5000        0.3333       0.5000         6          2",
        "  95 %       .500–1.00   .750–1.00 .000–1.00",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    let json = folder.grammaton(&["eval", "dependencies", "gold.conllu", "found.tsv", "--json"]);
    let scores: Value = serde_json::from_str(&json).unwrap();
    for class in ["up_to_10", "up_to_20", "all"] {
        assert_eq!(scores[class]["directed"], 4.0 / 6.0, "{class}");
        assert_eq!(scores[class]["words"], 6, "{class}");
        assert_eq!(scores["intervals"][class]["directed"]["low"], 0.5, "{class}");
    }
    // An interval is of the seed and the number of samples.
    let with = |more: &[&str]| {
        folder.grammaton(&[&["eval", "dependencies", "gold.conllu", "found.tsv"], more].concat())
    };
    assert_eq!(with(&["--seed", "1", "--resamples", "10000"]), text);
    assert_ne!(with(&["--resamples", "1"]), text);
    let kept = ["eval", "dependencies", "gold.conllu", "gold.conllu", "--keep-punctuation", "--json"];
    let scores: Value = serde_json::from_str(&folder.grammaton(&kept)).unwrap();
    assert_eq!((&scores["all"]["words"], &scores["all"]["exact"]), (&Value::from(9), &Value::from(1.0)));
}

#[test]
fn two_outputs_are_compared() {
    let folder = folder();
    let args = ["eval", "dependencies", "found.tsv", "other.tsv", "--against", "gold.conllu"];
    let json = folder.grammaton(&[&args[..], &["--json", "--resamples", "200"]].concat());
    let found: Value = serde_json::from_str(&json).unwrap();
    let all = &found["all"];
    assert_eq!((&all["first"], &all["second"]), (&Value::from(4.0 / 6.0), &Value::from(4.0 / 6.0)));
    assert_eq!((all["only_first"].as_u64(), all["only_second"].as_u64()), (Some(2), Some(2)));
    assert_eq!(all["sign_test"], 1.0);
    // A set has the first sentence twice, the second one twice, or both: differences −1/2, 1 and 0.
    let bootstrap = &all["bootstrap"];
    assert_eq!((&bootstrap["low"], &bootstrap["high"]), (&Value::from(-0.5), &Value::from(1.0)));
    assert_eq!((&bootstrap["difference"], &bootstrap["resamples"]), (&Value::from(0.0), &Value::from(200)));

    let text = folder.grammaton(&args);
    let row = text.lines().find(|line| line.starts_with("all")).unwrap();
    assert!(row.starts_with("all           0.6667  0.6667  +0.0000  -0.5000 to +1.0000"), "{text}");
    assert_eq!(text, folder.grammaton(&[&args[..], &["--seed", "1"]].concat()));
    assert_ne!(text, folder.grammaton(&[&args[..], &["--seed", "2"]].concat()));
}

#[test]
fn incomparable_files_are_refused_in_one_line() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path(name), text).unwrap();
    write("words.tsv", &FOUND.replace("dog", "cat"));
    write("short.tsv", FOUND.split_inclusive("\n\n").next().unwrap());
    write("cycle.tsv", &FOUND.replace("Do\tVB\t0", "Do\tVB\t2"));
    write("none.tsv", &FOUND.replace("\t0\n", "\t_\n").replace("\t1\n", "\t_\n").replace("\t3\n", "\t_\n"));
    write("columns.tsv", "The\tdog\tbarks\tloudly\n");
    write("empty.tsv", "\n");
    for (name, expected) in [
        (
            "words.tsv",
            "words.tsv:1: found `cat` as word 2 of the sentence, but gold.conllu:2 has `dog`; \
             expected the same words, with punctuation or without",
        ),
        (
            "short.tsv",
            "short.tsv has 1 sentences, but gold.conllu has 2; expected the same ones, with punctuation or without",
        ),
        (
            "cycle.tsv",
            "cycle.tsv:6: `Do` is below itself; expected a tree, in which the heads lead from every word to 0, the root",
        ),
        (
            "none.tsv",
            "none.tsv:1: the words of the sentence have no heads; expected one for each, 0 for the root",
        ),
        (
            "columns.tsv",
            "columns.tsv:1: found 4 columns between tabs, expected 10 (CoNLL-U), or in all lines 2 or 3 (word, tag, head)",
        ),
        (
            "empty.tsv",
            "empty.tsv:1: there are no sentences; expected CoNLL-U, or a word, its tag and its head a line, with tabs \
             between them",
        ),
        ("absent", "absent: cannot read the sentences: No such file or directory (os error 2)"),
    ] {
        refused(&folder, &["gold.conllu", name], expected);
        refused(&folder, &["found.tsv", name, "--against", "gold.conllu"], expected);
    }
    refused(&folder, &["-", "found.tsv", "--against", "-"], "only one of the files can be standard input");
    let kept = "found.tsv:1: found `Loudly` as word 4 of the sentence, but gold.conllu:2 has `.`; \
                expected the same words, with punctuation or without";
    refused(&folder, &["gold.conllu", "found.tsv", "--keep-punctuation"], kept);
}

/// Folder of corpora outside the repository.
fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data")
}

fn treebank(path: &Path) -> Document {
    let bytes = fs::read(path).unwrap();
    Document::read(&bytes, &path.display().to_string(), Tags::Xpos).unwrap()
}

/// Sentences of at most `max_length` words without punctuation.
fn short(document: &Document, max_length: usize) -> Vec<Sentence> {
    select(&document.sentences, Punctuation::Removed, max_length).sentences
}

#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_treebanks_are_converted_as_published() {
    let corpora = corpora();
    for (treebank_file, name, max_length) in [
        ("ud/UD_English-EWT/en_ewt-ud-train.conllu.gz", "ewt10", 10),
        ("ud/UD_English-EWT/en_ewt-ud-test.conllu", "ewt-test", usize::MAX),
        ("wsj-sample/wsj-sample.dep.tsv", "wsj10", 10),
    ] {
        let document = treebank(&corpora.join(treebank_file));
        let sentences = short(&document, max_length);
        let text = |line: &dyn Fn(&Sentence) -> Vec<String>| -> String {
            sentences.iter().map(|sentence| line(sentence).join(" ") + "\n").collect()
        };
        let tags = text(&|sentence| sentence.tags.clone());
        let heads = text(&|sentence| sentence.heads.iter().flatten().map(u32::to_string).collect());
        let expected = |what: &str| fs::read_to_string(corpora.join(format!("dmv-parity/{name}.{what}")));
        assert!(tags == expected("tags").unwrap(), "{name}: other tags");
        assert!(heads == expected("heads").unwrap(), "{name}: other heads");
        let written = document.with_heads(&sentences, Punctuation::Removed);
        let again = Document::read(written.as_bytes(), "written", Tags::Xpos).unwrap();
        let again = short(&again, max_length);
        let same =
            |(a, b): (&Sentence, &Sentence)| (&a.words, &a.tags, &a.heads) == (&b.words, &b.tags, &b.heads);
        assert!(again.len() == sentences.len() && again.iter().zip(&sentences).all(same), "{name}: written");
    }
}

/// Needs corpora outside the repository. The numbers, in per cent, are from section 4 of the README beside the outputs: attach-right
/// and attach-left, and the Viterbi and MBR trees of EM after 20 rounds.
#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_published_outputs_have_their_published_scores() {
    let corpora = corpora();
    let em = |name: &str, gold: &[Sentence], column: usize| -> Vec<Sentence> {
        let path = corpora.join(format!("dmv-parity/{name}.em20.decoded.txt"));
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), gold.len());
        let heads = |line: &str| -> Vec<u32> {
            let heads = line.split('|').nth(column).unwrap();
            heads.split_whitespace().map(|head| head.parse().unwrap()).collect()
        };
        let with =
            |(sentence, line): (&Sentence, &str)| Sentence { heads: Some(heads(line)), ..sentence.clone() };
        gold.iter().zip(text.lines()).map(with).collect()
    };
    for (treebank_file, name, max_length, expected) in [
        ("wsj-sample/wsj-sample.dep.tsv", "wsj10", 10, [[36.85, 19.09, 46.60, 46.99]; 3]),
        ("ud/UD_English-EWT/en_ewt-ud-train.conllu.gz", "ewt10", 10, [[36.43, 17.50, 26.92, 27.03]; 3]),
        (
            "ud/UD_English-EWT/en_ewt-ud-test.conllu",
            "ewt-test",
            usize::MAX,
            [[37.69, 18.70, 28.32, 28.47], [34.35, 12.71, 22.36, 22.66], [33.53, 10.26, 19.54, 20.03]],
        ),
    ] {
        let gold = short(&treebank(&corpora.join(treebank_file)), max_length);
        let [viterbi, mbr] = [1, 2].map(|column| {
            let predicted = em(name, &gold, column);
            let source = |name, sentences| Source { name, items: sentences };
            score(source("gold", &gold), source(name, &predicted), Punctuation::Removed).unwrap()
        });
        let classes = viterbi.classes().into_iter().zip(mbr.classes());
        for (((class, viterbi), (_, mbr)), expected) in classes.zip(expected) {
            let found = [viterbi.attach_right, viterbi.attach_left, viterbi.directed, mbr.directed];
            for (found, expected) in found.into_iter().zip(expected) {
                let found = 100.0 * found.unwrap();
                assert!(
                    (found - expected).abs() < 0.005 + 1e-9,
                    "{name}, {class}: {found}, expected {expected}"
                );
            }
        }
    }
}
