//! `lexicon.tsv` and `boundaries.tsv`: laws over small corpora, the files of a fixed job, and the same bytes on any threads and after `--resume`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::cli::grammaton;
use super::lines::{folder, read, trained};

/// Model, method, decoders, and the recommended decoder.
const METHODS: [[&str; 4]; 6] = [
    ["adaptor", "vb", "[\"viterbi\", \"mbr\"]", "mbr"],
    ["adaptor", "vb", "[\"viterbi\"]", "viterbi"],
    ["adaptor", "hastings", "[\"viterbi\", \"mbr\"]", "mbr-vote"],
    ["pcfg", "em", "[\"mbr-tree\", \"viterbi\"]", "mbr-tree"],
    ["pcfg", "gibbs", "[\"viterbi\"]", "mbr-vote"],
    ["pcfg", "hastings", "[\"mbr\"]", "mbr-vote"],
];

fn job([kind, method, decoders, _]: [&str; 4], more: &str) -> String {
    let samples = if ["gibbs", "hastings"].contains(&method) {
        "keep_every = 1\nburn_in = 0.0\nrestarts = 2\n"
    } else {
        ""
    };
    format!(
        "[model]\nkind = \"{kind}\"\ngrammar = \"g.gr\"\n[corpus]\npath = \"corpus.txt\"\n\
         [inference]\nmethod = \"{method}\"\nmax_rounds = 3\n{samples}[output]\ndecoders = {decoders}\n{more}"
    )
}

/// The rows of a table, without its header.
fn rows(table: &str, header: &str) -> Vec<Vec<String>> {
    assert_eq!(table.lines().next(), Some(header));
    table.lines().skip(1).map(|row| row.split('\t').map(str::to_owned).collect()).collect()
}

const LEXICON: &str = "segment\tcategory\tcount\tshare\tlog_probability\tin_gold\texample_1\texample_2";
const BOUNDARIES: &str = "line\tposition\tprobability\tboundary";

/// The results of a job, as the laws read them.
struct Results {
    lexicon: Vec<Vec<String>>,
    /// By line and position: probability, and whether it is a boundary.
    boundaries: BTreeMap<(u32, u32), (f64, bool)>,
    /// The segmentation as a table, of lines that have an analysis: number, words of gold, words found, status.
    lines: Vec<(u32, Vec<String>, Vec<String>, String)>,
}

impl Results {
    fn read(dir: &Path, decoder: &str) -> Results {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let table = read(dir, &format!("segmentation.{decoder}.tsv"));
        let table = rows(&table, "line\tgold\tpredicted\tlog_probability\tstatus");
        let boundary = |row: Vec<String>| {
            let [line, position, probability, is_boundary] = &row[..] else { panic!("{row:?}") };
            assert!(["yes", "no"].contains(&&is_boundary[..]), "{row:?}");
            let place = (line.parse().unwrap(), position.parse().unwrap());
            (place, (probability.parse().unwrap(), is_boundary == "yes"))
        };
        let boundaries: Vec<_> =
            rows(&read(dir, "boundaries.tsv"), BOUNDARIES).into_iter().map(boundary).collect();
        assert!(boundaries.is_sorted_by(|a, b| a.0 < b.0), "{boundaries:?}");
        let line =
            |row: Vec<String>| (row[0].parse().unwrap(), words(&row[1]), words(&row[2]), row[4].clone());
        Results {
            lexicon: rows(&read(dir, "lexicon.tsv"), LEXICON),
            boundaries: boundaries.into_iter().collect(),
            lines: table.into_iter().map(line).collect(),
        }
    }

    /// Every segment of the segmentation is in the lexicon once, with its count, the first lines that have it, and whether gold has it.
    fn check_segments(&self, has_gold: bool) {
        let mut counts: BTreeMap<&str, (u64, Vec<String>)> = BTreeMap::new();
        for (_, _, found, _) in &self.lines {
            for segment in found {
                let (count, examples) = counts.entry(segment).or_default();
                *count += 1;
                let line = found.join(" ");
                if examples.len() < 2 && !examples.contains(&line) {
                    examples.push(line);
                }
            }
        }
        let of_gold: BTreeSet<&str> =
            self.lines.iter().flat_map(|line| &line.1).map(String::as_str).collect();
        let mut expected: Vec<_> = counts.into_iter().collect();
        expected.sort_by(|a, b| b.1.0.cmp(&a.1.0).then(a.0.cmp(b.0)));
        assert_eq!(self.lexicon.len(), expected.len());
        for (row, (segment, (count, examples))) in self.lexicon.iter().zip(expected) {
            let example = |at: usize| examples.get(at).map_or("", String::as_str);
            let in_gold = if of_gold.contains(segment) { "yes" } else { "no" };
            assert_eq!((&row[0][..], &row[2][..]), (segment, &count.to_string()[..]));
            assert_eq!(
                (&row[5][..], &row[6][..], &row[7][..]),
                (if has_gold { in_gold } else { "" }, example(0), example(1))
            );
        }
    }

    /// There is a row for each position inside a sentence that was trained on, whose boundary is that of the segmentation. No segment is more probable
    /// than its edges.
    fn check_probabilities(&self) {
        let boundaries = &self.boundaries;
        let mut bounds: BTreeMap<&str, (f64, u32)> = BTreeMap::new();
        let mut n_positions = 0;
        for (line, _, found, status) in self.lines.iter().filter(|(_, _, found, _)| !found.is_empty()) {
            let mut end = 0;
            let n_symbols: u32 = found.iter().map(|segment| segment.len() as u32).sum();
            let mut ends = BTreeSet::new();
            let edge = |at: u32| boundaries.get(&(*line, at)).map_or(1.0, |&(probability, _)| probability);
            for segment in found {
                let start = end;
                end += segment.len() as u32;
                ends.insert(end);
                let (sum, n) = bounds.entry(segment).or_default();
                (*sum, *n) = (*sum + edge(start).min(edge(end)), *n + 1);
            }
            if status != "ok" {
                continue;
            }
            n_positions += n_symbols as usize - 1;
            for position in 1..n_symbols {
                let (probability, is_boundary) = boundaries[&(*line, position)];
                assert!((0.0..=1.0).contains(&probability));
                assert_eq!(is_boundary, ends.contains(&position), "line {line}, position {position}");
            }
        }
        assert_eq!(boundaries.len(), n_positions);
        for row in &self.lexicon {
            let (sum, n) = bounds[&row[0][..]];
            let share: f64 = row[3].parse().unwrap();
            assert!((0.0..=sum / f64::from(n) + 1e-4).contains(&share), "{row:?}: {sum} of {n}");
        }
    }

    /// The probability of a string is its weight on the stick; without trees there are no categories.
    #[expect(clippy::disallowed_methods, reason = "the reference is computed by std")]
    fn check_model(&self, sticks: &str, has_trees: bool) {
        let sticks = rows(sticks, "nonterminal\trank\tstring\tuses\tweight");
        let weights: BTreeMap<&str, f64> =
            sticks.iter().map(|row| (&row[2][..], row[4].parse().unwrap())).collect();
        for row in &self.lexicon {
            match (weights.get(&row[0][..]), &row[4][..]) {
                (None, found) => assert_eq!(found, "", "{row:?}"),
                (Some(weight), found) => {
                    assert!((found.parse::<f64>().unwrap() - weight.ln()).abs() < 1e-4, "{row:?}: {weight}");
                }
            }
            assert_eq!(&row[1], if has_trees { "Word" } else { "" });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Laws of both files, for every kind of decoder, with held-out sentences and without.
    #[test]
    fn the_lexicon_has_the_segments_and_boundaries_have_probabilities(
        lines in prop::collection::vec(prop::collection::vec("[ab]{1,3}", 0..5), 4..12),
        method in 0..METHODS.len(),
        holds_out in any::<bool>(),
    ) {
        let n_sentences = lines.iter().filter(|words| !words.is_empty()).count();
        prop_assume!(n_sentences > 3);
        let has_gold = lines.iter().any(|words| words.len() > 1);
        let [.., decoder] = METHODS[method];
        let dir = folder(&job(METHODS[method], "keep_checkpoints = 0\n"));
        let text: String = lines.iter().map(|words| words.join(" ") + "\n").collect();
        fs::write(dir.path().join("corpus.txt"), text).unwrap();
        trained(dir.path(), &[if holds_out { "corpus.held_out_share=0.4" } else { "corpus.held_out_share=0" }]);
        let results = Results::read(dir.path(), decoder);
        results.check_segments(has_gold);
        results.check_probabilities();
        results.check_model(&read(dir.path(), "model/sticks.tsv"), ["viterbi", "mbr-tree"].contains(&decoder));
    }
}

const CORPUS: &str = "ab a ab\n\nab bb\na ab\nbb ab a\nab\n";

#[test]
fn the_files_of_a_job_are_as_documented() {
    let dir = folder(&job(METHODS[2], "keep_checkpoints = 0\n"));
    fs::write(dir.path().join("corpus.txt"), CORPUS).unwrap();
    trained(dir.path(), &[]);
    let lexicon = [
        LEXICON,
        "ab\t\t6\t0.6486\t-1.2530\tyes\tab a ab\tab b b",
        "b\t\t4\t0.8545\t-0.9258\tno\tab b b\tb b ab a",
        "a\t\t3\t0.6885\t-1.7979\tyes\tab a ab\ta ab",
    ];
    assert_eq!(read(dir.path(), "lexicon.tsv").lines().collect::<Vec<_>>(), lexicon);
    let boundaries = [
        BOUNDARIES,
        "1\t1\t0.2592\tno",
        "1\t2\t0.9143\tyes",
        "1\t3\t0.6578\tyes",
        "1\t4\t0.2704\tno",
        "3\t1\t0.1981\tno",
        "3\t2\t1.0000\tyes",
        "3\t3\t1.0000\tyes",
        "4\t1\t0.6578\tyes",
        "4\t2\t0.2704\tno",
        "5\t1\t0.7357\tyes",
        "5\t2\t0.6821\tyes",
        "5\t3\t0.4470\tno",
        "5\t4\t0.8357\tyes",
        "6\t1\t0.1981\tno",
    ];
    assert_eq!(read(dir.path(), "boundaries.tsv").lines().collect::<Vec<_>>(), boundaries);
}

#[test]
fn segments_of_tokens_are_printed_with_spaces() {
    let dir = folder(&job(METHODS[1], "keep_checkpoints = 0\n"));
    fs::write(dir.path().join("corpus.txt"), "a b | a\na b | a b\na b\n").unwrap();
    trained(dir.path(), &["corpus.unit=token"]);
    let lexicon = [
        LEXICON,
        "a b\tWord\t4\t0.8656\t-0.9159\tyes\ta b | a\ta b | a b",
        "a\tWord\t1\t0.7762\t-1.5274\tyes\ta b | a\t",
    ];
    assert_eq!(read(dir.path(), "lexicon.tsv").lines().collect::<Vec<_>>(), lexicon);
}

/// A result that goes on from an early checkpoint, and results of one thread and of three, are the same files.
#[test]
fn the_files_are_the_same_on_any_threads_and_after_a_resumption() {
    let dir = folder(&job(METHODS[2], "keep_checkpoints = 100\ncheckpoint_seconds = 0\n"));
    fs::write(dir.path().join("corpus.txt"), CORPUS.repeat(20)).unwrap();
    let job = dir.path().join("job.toml").display().to_string();
    let out = |name: &str| dir.path().join(name);
    let train = |name: &str, more: &[&str]| {
        let args = ["train", &job, "--quiet", "--out", &out(name).display().to_string()];
        grammaton(&[&args, more].concat()).success();
        ["lexicon.tsv", "boundaries.tsv"].map(|file| fs::read_to_string(out(name).join(file)).unwrap())
    };
    let one = train("one", &["--workers", "1"]);
    assert!(one.iter().all(|file| file.lines().count() > 2), "{one:?}");
    assert_eq!(train("three", &["--workers", "3"]), one);
    fs::remove_file(out("one").join("summary.json")).unwrap();
    let checkpoints = fs::read_dir(out("one").join("checkpoints")).unwrap();
    let mut checkpoints: Vec<_> = checkpoints.map(|entry| entry.unwrap().path()).collect();
    checkpoints.sort();
    assert!(checkpoints.len() > 2, "{checkpoints:?}");
    checkpoints[1..].iter().for_each(|path| fs::remove_file(path).unwrap());
    assert_eq!(train("one", &["--workers", "1", "--resume"]), one);
}
