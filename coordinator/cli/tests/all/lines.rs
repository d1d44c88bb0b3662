//! Law: training and `parse` write one line for each line of any text.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use fleet::Inline;
use grammaton::data::corpus::{Corpus, Options, Unit};
use grammaton::data::eval::segmentation::score_corpora;
use proptest::prelude::*;
use tempfile::TempDir;
use training::events::All;
use training::job::Job;
use training::metrics::Summary;
use training::outcome::FleetUse;
use training::run::{Earlier, Run};
use training::train::group::Inputs;
use training::train::train;

const GRAMMAR: &str =
    "1 1 S --> Word\n1 1 S --> Word S\nWord --> L\nWord --> L Word\n1 1 L --> a\n1 1 L --> b\n";

/// Styles of marking words: format, unit, separator of symbols, separator of words.
const STYLES: [[&str; 4]; 3] =
    [["segmented", "char", "", " "], ["segmented", "token", " ", " | "], ["tokens", "token", " ", " "]];

/// Kind of model and method, with their decodings.
const METHODS: [(&str, &str, &[&str]); 3] = [
    ("adaptor", "vb", &["viterbi", "mbr"]),
    ("adaptor", "hastings", &["viterbi", "mbr", "sample-average", "maximum-marginal", "mbr-vote"]),
    ("pcfg", "em", &["viterbi", "mbr"]),
];

/// A text: the words of each line, and the format of the file.
#[derive(Clone, Debug)]
struct Text {
    lines: Vec<Vec<String>>,
    style: usize,
    crlf: bool,
    byte_order_mark: bool,
    last_line_ends: bool,
    gzip: bool,
}

impl Text {
    fn words(&self, line: &[String]) -> String {
        let [_, _, between_symbols, between_words] = STYLES[self.style];
        let word = |word: &String| word.chars().map(String::from).collect::<Vec<_>>().join(between_symbols);
        line.iter().map(word).collect::<Vec<_>>().join(between_words)
    }

    /// Bytes of the file, with white space in empty lines and around others.
    fn bytes(&self) -> Vec<u8> {
        let blanks = ["", " ", "\t ", "\u{3000}"];
        let lines = self.lines.iter().enumerate();
        let lines: Vec<String> = lines
            .map(|(at, line)| blanks[at % 4].to_owned() + &self.words(line) + blanks[at / 4 % 4])
            .collect();
        let end = if self.crlf { "\r\n" } else { "\n" };
        let mut text = if self.byte_order_mark { "\u{feff}" } else { "" }.to_owned() + &lines.join(end);
        // Without a line end, an empty last line would not be a line.
        if self.last_line_ends || text.ends_with('\n') || text.is_empty() {
            text += end;
        }
        if !self.gzip {
            return text.into_bytes();
        }
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    }

    /// Checks that `written` has a line for each line, empty or with the same symbols.
    fn check(&self, written: &str) {
        let symbols = |line: &str| line.replace([' ', '|'], "");
        let expected: Vec<String> = self.lines.iter().map(|line| line.concat()).collect();
        assert_eq!(written.lines().map(symbols).collect::<Vec<_>>(), expected, "{written}");
    }

    /// Checks that a decoding of a segmented text can be scored against the text.
    fn check_scores(&self, dir: &Path, decoding: &str) {
        let [format, unit, ..] = STYLES[self.style];
        if format == "segmented" {
            let unit = if unit == "char" { Unit::Char } else { Unit::Token };
            let options = Options { unit, ..Options::default() };
            let corpus = |name: &str| Corpus::open_with(&dir.join(name), &options).unwrap().0;
            let predicted = corpus(&format!("out/segmentation.{decoding}.txt"));
            score_corpora(&corpus("corpus.txt"), &predicted).unwrap();
        }
    }

    /// Checks that `trees` has a line for each line, a tree of the same symbols, or `()`.
    fn check_trees(&self, trees: &str) {
        assert_eq!(trees.lines().count(), self.lines.len(), "{trees}");
        for (tree, line) in trees.lines().zip(&self.lines) {
            let symbols =
                |word: &str| word.strip_suffix(')').map(|word| word.trim_end_matches(')').to_owned());
            let found: String = tree.split(' ').filter_map(symbols).collect();
            assert!(tree == "()" && !line.is_empty() || found == line.concat(), "{tree}: {line:?}");
        }
    }

    /// Checks that `table` has a row for each line, with its gold and the same line of `predicted`.
    fn check_table(&self, table: &str, predicted: &str, statuses: &[&str]) {
        let mut rows = table.lines();
        assert_eq!(rows.next(), Some("line\tgold\tpredicted\tlog_probability\tstatus"));
        let rows: Vec<Vec<&str>> = rows.map(|row| row.split('\t').collect()).collect();
        assert_eq!(rows.len(), self.lines.len(), "{table}");
        let has_gold = STYLES[self.style][0] == "segmented" && self.lines.iter().any(|line| line.len() > 1);
        for (at, ((row, line), predicted)) in rows.iter().zip(&self.lines).zip(predicted.lines()).enumerate()
        {
            let gold = if has_gold { self.words(line) } else { String::new() };
            assert_eq!((row[0], row[1]), (&*(at + 1).to_string(), &*gold), "{table}");
            if line.is_empty() {
                assert_eq!(row[2..], ["", "", "empty"], "{table}");
            } else if ["no analysis", "unknown symbol"].contains(&row[4]) {
                assert_eq!(row[2..4], ["", ""], "{table}");
            } else {
                assert_eq!(row[2], predicted);
                assert!(row[3].is_empty() || row[3].parse::<f64>().unwrap() < 1e-9, "{table}");
            }
            assert!(line.is_empty() || statuses.contains(&row[4]), "{table}");
        }
    }
}

/// Texts of words over these letters, with at least one sentence.
fn text(word: &'static str) -> impl Strategy<Value = Text> {
    let line = prop_oneof![Just(Vec::new()), prop::collection::vec(word, 1..4)];
    let lines =
        prop::collection::vec(line, 1..12).prop_filter("a sentence", |lines| !lines.concat().is_empty());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (lines, 0..STYLES.len(), flags).prop_map(
        |(lines, style, (crlf, byte_order_mark, last_line_ends, gzip))| Text {
            lines,
            style,
            crlf,
            byte_order_mark,
            last_line_ends,
            gzip,
        },
    )
}

/// A folder with this job and its grammar.
pub fn folder(job: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("job.toml"), job).unwrap();
    fs::write(dir.path().join("g.gr"), GRAMMAR).unwrap();
    dir
}

fn job(text: &Text, kind: &str, method: &str) -> String {
    let [format, unit, ..] = STYLES[text.style];
    let samples = if ["gibbs", "hastings"].contains(&method) { "keep_every = 1\n" } else { "" };
    format!(
        "[model]\nkind = \"{kind}\"\ngrammar = \"g.gr\"\n[corpus]\npath = \"corpus.txt\"\nformat = \"{format}\"\nunit = \"{unit}\"\n\
         [inference]\nmethod = \"{method}\"\nmax_rounds = 2\n{samples}[output]\nkeep_checkpoints = 0\n"
    )
}

/// Trains in this thread.
pub fn trained(dir: &Path, settings: &[&str]) -> Summary {
    let file = dir.join("job.toml");
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    let job = Job::load(&file, &settings).unwrap();
    let inputs = Inputs::load(&job).unwrap();
    let mut run = Run::open(&job, &file, Earlier::Overwrite).unwrap();
    let outcome = run.train(&mut All(Vec::new()), |_, checkpoints, observer| {
        train(&job, &inputs, &Inline::default(), checkpoints, observer)
    });
    run.finish(outcome.unwrap(), &FleetUse::default(), &mut All(Vec::new())).unwrap()
}

/// A file of results.
pub fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join("out").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs `grammaton parse` in `dir`; returns its exit code and standard output.
fn parse(dir: &Path, args: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_grammaton"))
        .args([&["parse", "out"], args].concat())
        .current_dir(dir)
        .env_remove("GRAMMATON_LOG")
        .output()
        .unwrap();
    let code = output.status.code().unwrap();
    assert!(code < 2, "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    (code, String::from_utf8(output.stdout).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every decoding of training has one line for each line of the corpus, and empty lines do not change the parameters.
    #[test]
    fn training_gives_a_line_for_each_line(text in text("[ab]{1,4}"), method in 0..METHODS.len(), holds_out in any::<bool>()) {
        let (kind, name, decodings) = METHODS[method];
        let dir = folder(&job(&text, kind, name));
        let n_sentences = text.lines.iter().filter(|line| !line.is_empty()).count();
        let holds_out = holds_out && n_sentences > 3;
        let share = if holds_out { "corpus.held_out_share=0.4" } else { "corpus.held_out_share=0" };
        fs::write(dir.path().join("corpus.txt"), text.bytes()).unwrap();
        let summary = trained(dir.path(), &[share]);
        for decoding in decodings {
            let segmentation = read(dir.path(), &format!("segmentation.{decoding}.txt"));
            text.check(&segmentation);
            let table = read(dir.path(), &format!("segmentation.{decoding}.tsv"));
            let statuses: &[&str] = if holds_out {
&["ok", "held out", "no analysis"]
} else {
&["ok"]
};
            text.check_table(&table, &segmentation, statuses);
            text.check_scores(dir.path(), decoding);
            let n_held_out = table.lines().filter(|row| !row.ends_with("\tok") && !row.ends_with("\tempty")).count() - 1;
            prop_assert_eq!(n_held_out, n_sentences - summary.sentences);
        }
        text.check_trees(&read(dir.path(), "parses.txt"));

        let mut dense = text.clone();
        dense.lines.retain(|line| !line.is_empty());
        let dir = folder(&job(&dense, kind, name));
        fs::write(dir.path().join("corpus.txt"), dense.bytes()).unwrap();
        prop_assert_eq!(summary.result.parameters_sha256, trained(dir.path(), &[share]).result.parameters_sha256);
    }

    /// `parse` prints one line for each line of its input, in every format.
    #[test]
    fn parse_gives_a_line_for_each_line(text in text("[abx]{1,3}")) {
        let sentences = ["ab", "a", "", "b a"].map(|line| line.split_whitespace().map(str::to_owned).collect());
        let dir = folder(&job(&text, "adaptor", "vb"));
        fs::write(dir.path().join("corpus.txt"), Text { lines: sentences.to_vec(), ..text.clone() }.bytes()).unwrap();
        trained(dir.path(), &[]);
        fs::write(dir.path().join("new.txt"), text.bytes()).unwrap();
        let (code, segmentation) = parse(dir.path(), &["new.txt", "--strict"]);
        prop_assert_eq!(parse(dir.path(), &["new.txt"]), (0, segmentation.clone()));
        text.check(&segmentation);
        let is_known = |line: &Vec<String>| !line.concat().contains('x');
        prop_assert_eq!(code, i32::from(!text.lines.iter().all(is_known)));
        let (_, table) = parse(dir.path(), &["new.txt", "--format", "tsv"]);
        text.check_table(&table, &segmentation, &["ok", "unknown symbol"]);
        for (row, line) in table.lines().skip(1).zip(&text.lines) {
            prop_assert_eq!(is_known(line), !row.ends_with("unknown symbol"));
        }
        text.check_trees(&parse(dir.path(), &["new.txt", "--format", "brackets"]).1);
    }
}

#[test]
fn text_of_empty_lines_is_parsed_as_empty_lines() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    let text = Text {
        lines: vec![words("ab a")],
        style: 0,
        crlf: false,
        byte_order_mark: false,
        last_line_ends: true,
        gzip: false,
    };
    let dir = folder(&job(&text, "adaptor", "vb"));
    fs::write(dir.path().join("corpus.txt"), text.bytes()).unwrap();
    trained(dir.path(), &[]);
    fs::write(dir.path().join("new.txt"), "\n \n").unwrap();
    assert_eq!(parse(dir.path(), &["new.txt"]), (0, "\n\n".to_owned()));
    let table = "line\tgold\tpredicted\tlog_probability\tstatus\n1\t\t\t\tempty\n2\t\t\t\tempty\n";
    assert_eq!(parse(dir.path(), &["new.txt", "--format", "tsv"]), (0, table.to_owned()));
}

/// Held-out sentences have no part in a start from trees.
#[test]
fn trees_of_held_out_sentences_are_left_out_of_a_start() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    let text = Text {
        lines: ["ab a", "a", "bb a", "b ab b", "ba"].map(words).to_vec(),
        style: 0,
        crlf: false,
        byte_order_mark: false,
        last_line_ends: true,
        gzip: false,
    };
    let dir = folder(&job(&text, "pcfg", "em"));
    fs::write(dir.path().join("corpus.txt"), text.bytes()).unwrap();
    let share = "corpus.held_out_share=0.4";
    trained(dir.path(), &[share]);
    let (trees, table) = (read(dir.path(), "parses.txt"), read(dir.path(), "segmentation.viterbi.tsv"));
    let is_trained = |row: &str| row.ends_with("\tok");
    let of_trained = trees.lines().zip(table.lines().skip(1)).filter(|(_, row)| is_trained(row));
    let of_trained: Vec<&str> = of_trained.map(|(tree, _)| tree).collect();
    assert_eq!(of_trained.len(), 3, "{table}");
    let digest = |name: &str, trees: &str| {
        let path = dir.path().join(name);
        fs::write(&path, trees).unwrap();
        let from = format!("inference.start_from={}", path.display());
        let out = format!("output.dir={}", dir.path().join(format!("out-{name}")).display());
        trained(dir.path(), &[share, "inference.start=trees", &from, &out]).result.parameters_sha256
    };
    assert_eq!(digest("all", &trees), digest("some", &of_trained.join("\n")));
}

#[test]
fn parse_with_a_model_of_trees_gives_a_line_for_each_line() {
    let dir = folder(
        "[model]\nkind = \"pcfg-la\"\n[corpus]\npath = \"trees.txt\"\n[inference]\nmethod = \"em\"\nmax_rounds = 2\n\
         [output]\nkeep_checkpoints = 0\n",
    );
    fs::write(dir.path().join("trees.txt"), "(S (N x) (V y))\n(S (N y) (V x))\n").unwrap();
    trained(dir.path(), &[]);
    fs::write(dir.path().join("new.txt"), "\nx y\n \ny x\n\n").unwrap();
    let (_, trees) = parse(dir.path(), &["new.txt"]);
    let lines: Vec<bool> = trees.lines().map(str::is_empty).collect();
    assert_eq!(lines, [true, false, true, false, true], "{trees}");
    fs::write(dir.path().join("new.txt"), " \n\n").unwrap();
    assert_eq!(parse(dir.path(), &["new.txt"]), (0, "\n\n".to_owned()));
}

const TREEBANK: &str = "# sent_id = 1\n\
    1-2\tcannot\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n\
    1\tcan\tcan\tAUX\tMD\tVerbForm=Fin\t0\troot\t0:root\t_\n\
    2\tnot\tnot\tPART\tRB\t_\t1\tadvmod\t1:advmod\t_\n\
    2.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t1:x\t_\n\
    3\t.\t.\tPUNCT\t.\t_\t1\tpunct\t_\t_\n\
    \n\
    # too long to be trained on\n\
    1\ta\ta\tDET\tDT\t_\t2\tdet\t_\t_\n\
    2\tb\tb\tNOUN\tNN\t_\t0\troot\t_\t_\n\
    3\tc\tc\tAUX\tMD\t_\t2\tdep\t_\t_\n\
    \n\n\
    1\t!\t!\tPUNCT\t.\t_\t0\troot\t_\t_\n\
    2\t!\t!\tPUNCT\t.\t_\t1\tpunct\t_\t_\n";

/// Lines of a file, the heads of its words replaced by `H`; the heads.
fn without_heads(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut lines, mut heads) = (Vec::new(), Vec::new());
    for line in text.split('\n') {
        let mut columns: Vec<&str> = line.split('\t').collect();
        if columns.len() == 10 && columns[0].bytes().all(|byte| byte.is_ascii_digit()) {
            heads.push(columns[6].to_owned());
            columns[6] = "H";
        }
        lines.push(columns.join("\t"));
    }
    (lines, heads)
}

#[test]
fn a_dependency_model_changes_only_the_heads_of_a_file() {
    let dir = folder(
        "[model]\nkind = \"dmv\"\n[corpus]\npath = \"corpus.conllu\"\nmax_length = 2\n\
         [inference]\nmethod = \"em\"\nmax_rounds = 2\n[output]\nkeep_checkpoints = 0\n",
    );
    fs::write(dir.path().join("corpus.conllu"), TREEBANK).unwrap();
    trained(dir.path(), &[]);
    let same = without_heads(TREEBANK).0;
    for decoder in ["viterbi", "mbr-arcs"] {
        let (lines, heads) = without_heads(&read(dir.path(), &format!("parses.{decoder}.conllu")));
        assert_eq!(lines, same);
        // Punctuation depends on the word before it; sentences that were not trained on have no heads.
        assert_eq!(heads[2..], ["2", "_", "_", "_", "0", "1"]);
    }
    fs::write(dir.path().join("new.conllu"), TREEBANK.replace('\n', "\r\n")).unwrap();
    let (_, parsed) = parse(dir.path(), &["new.conllu"]);
    let (lines, heads) = without_heads(&parsed.replace("\r\n", "\n"));
    assert_eq!((lines, heads.iter().filter(|head| *head == "0").count()), (same, 3));
    assert_eq!(parsed.matches("\r\n").count(), TREEBANK.matches('\n').count());
    let plain = "a\tDET\t2\r\nb\tAUX\t0\r\n\r\nb\tAUX\t0\n";
    fs::write(dir.path().join("new.tsv"), plain).unwrap();
    let (_, parsed) = parse(dir.path(), &["new.tsv"]);
    assert_eq!(parsed.len(), plain.len());
    assert!(parsed.ends_with("\r\n\r\nb\tAUX\t0\n"), "{parsed:?}");
}
