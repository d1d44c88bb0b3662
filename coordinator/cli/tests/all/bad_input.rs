//! Bad input to the real binary: exit code 2, and one line with place, problem and remedy.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const JOB: &str = "[model]\ngrammar = \"g.gr\"\n[corpus]\npath = \"corpus.txt\"\n";
const GRAMMAR: &str =
    "1 1 S --> Word\n1 1 S --> Word S\nWord --> L\nWord --> L Word\n1 1 L --> a\n1 1 L --> b\n";
const CORPUS: &str = "ab a\nba b\n";

/// A folder with a valid job, which tests modify.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.write("job.toml", JOB).write("g.gr", GRAMMAR).write("corpus.txt", CORPUS);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Folder {
        fs::write(self.path(name), content).unwrap();
        self
    }

    fn run(&self, mut command: Command, args: &[&str]) -> Output {
        command
            .args(args)
            .current_dir(self.0.path())
            .env_remove("GRAMMATON_TOKEN")
            .env_remove("GRAMMATON_LOG");
        command.env("RUST_BACKTRACE", "1").output().unwrap()
    }

    fn grammaton(&self, args: &[&str]) -> Output {
        self.run(Command::new(binary()), args)
    }

    /// Checks that a command fails with all of `parts` in its one line, and leaves no `summary.json`.
    fn refuses(&self, args: &[&str], parts: &[&str]) {
        self.check(&self.grammaton(args), parts);
    }

    /// Checks that training with these settings fails so.
    fn training_refuses(&self, settings: &[&str], parts: &[&str]) {
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let args: Vec<&str> =
            ["train", "job.toml", "--quiet", "--overwrite"].into_iter().chain(settings).collect();
        self.refuses(&args, parts);
    }

    fn check(&self, output: &Output, parts: &[&str]) {
        let messages = String::from_utf8(output.stderr.clone()).unwrap();
        assert_eq!(output.status.code(), Some(2), "{}: {messages}", output.status);
        assert_eq!(messages.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{messages}");
        assert_eq!(messages.trim_end().lines().count(), 1, "{messages}");
        for part in parts {
            assert!(messages.contains(part), "{part:?} is not in: {messages}");
        }
        for unwanted in ["panic", "internal error", "backtrace", ".rs:"] {
            assert!(!messages.contains(unwanted), "{messages}");
        }
        assert!(!self.path("out/summary.json").exists());
    }

    fn train(&self) {
        let output = self.grammaton(&["train", "job.toml", "--quiet", "--overwrite"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(self.path("out/summary.json").exists());
    }
}

/// Heads are not used in training: those that are no tree are a notice, and an error where gold is needed.
#[test]
fn heads_that_are_no_tree_train_and_score_nothing() {
    let folder = Folder::new();
    let word =
        |number: u32, tag: &str, head: &str| format!("{number}\tw\tw\t{tag}\t_\t_\t{head}\tdep\t_\t_\n");
    let text = [
        word(1, "DET", "_"),
        word(2, "NOUN", "0"),
        "\n".to_owned(),
        word(1, "NOUN", "0"),
        word(2, "VERB", "1"),
    ];
    folder.write("t.conllu", text.concat());
    folder.write(
        "job.toml",
        "[model]\nkind = \"dmv\"\n[corpus]\npath = \"t.conllu\"\n[inference]\nmax_rounds = 2\n",
    );
    folder.train();
    let summary = fs::read_to_string(folder.path("out/summary.json")).unwrap();
    assert!(
        summary.contains("the heads of 1 sentences are no tree, so no heads are scored: t.conllu:2: "),
        "{summary}"
    );
    let folder = Folder::new();
    folder.write("t.conllu", text.concat());
    folder.refuses(&["eval", "dependencies", "t.conllu", "t.conllu"], &["t.conllu:2: some words"]);
}

#[test]
fn a_grammar_that_adapts_some_rules_of_a_parent_is_explained() {
    let folder = Folder::new();
    folder.write(
        "g.gr",
        "1 1 S --> Word\n1 1 S --> Word S\nWord --> L\n1 1 Word --> L Word\n1 1 L --> a\n1 1 L --> b\n",
    );
    folder.training_refuses(
        &[],
        &["g.gr:3:1: a rule of `Word` has discount 1", "so no nonterminal is adapted"],
    );
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_grammaton"))
}

#[test]
fn missing_files_are_named() {
    let folder = Folder::new();
    folder.train();
    fs::remove_file(folder.path("out/summary.json")).unwrap();
    folder.refuses(&["train", "absent.toml"], &["absent.toml: cannot read the job file: No such file"]);
    folder.training_refuses(
        &["model.grammar=absent.gr"],
        &["absent.gr: cannot read the grammar: No such file"],
    );
    folder
        .training_refuses(&["corpus.path=absent.txt"], &["absent.txt: cannot open the corpus: No such file"]);
    folder.refuses(&["parse", "out", "absent.txt"], &["absent.txt: cannot open the corpus: No such file"]);
    folder.refuses(&["parse", "absent", "corpus.txt"], &["absent", "no model here"]);
    folder
        .refuses(&["sample", "absent.gr", "-n", "1"], &["absent.gr: cannot read the grammar: No such file"]);
    folder.refuses(&["eval", "segmentation", "corpus.txt", "absent.txt"], &["absent.txt: cannot open"]);
}

#[test]
fn folders_are_refused_as_files() {
    let folder = Folder::new();
    folder.training_refuses(&["corpus.path=."], &["cannot read the corpus", "Is a directory"]);
    folder.training_refuses(&["model.grammar=."], &["cannot read the grammar", "Is a directory"]);
}

#[test]
fn text_that_is_not_utf8_is_refused_with_the_byte() {
    let folder = Folder::new();
    folder.write("corpus.txt", b"ab a\nb\xe9\n");
    folder.training_refuses(&[], &["corpus.txt:2: byte 6 is not UTF-8", "iconv"]);
    folder.write("corpus.txt", CORPUS).write("g.gr", b"1 1 S --> W\nW --> \xe9\n");
    folder
        .training_refuses(&[], &["g.gr:2: byte 18 is not UTF-8; convert the file, for instance with iconv"]);
    folder.refuses(&["sample", "g.gr", "-n", "1"], &["g.gr:2: byte 18 is not UTF-8"]);
}

#[test]
fn errors_in_grammars_have_line_and_column() {
    let folder = Folder::new();
    for (grammar, expected) in [
        ("1 1 S --> Word\nWord -> a\n", "g.gr:2:6: found `->`, expected `-->`"),
        ("1 1 S --> Word\nWord -->\n", "g.gr:2:"),
        ("1 1 S --> Word\nWord --> a\nOther --> b\n", "g.gr:3:"),
        ("1 1 S --> Word\n1 1 S --> S\nWord --> a\n", "g.gr:2:"),
        ("1 2 S --> Word\nWord --> a\n", "g.gr:1:3:"),
        ("", "g.gr"),
    ] {
        folder.write("g.gr", grammar);
        folder.training_refuses(&[], &[expected]);
    }
}

#[test]
fn sentence_that_the_grammar_cannot_derive_is_shown() {
    let folder = Folder::new();
    folder
        .write("g.gr", "1 1 S --> Word Word\nWord --> a\nWord --> b\n")
        .write("corpus.txt", "a b\n\na b a\nb a a a\n");
    let parts = [
        "corpus.txt:3: aba: the grammar cannot derive this sentence",
        "1 more",
        "add the rules",
        "leave it out",
    ];
    folder.training_refuses(&[], &parts);
}

#[test]
fn a_refused_sentence_leaves_the_earlier_result() {
    let folder = Folder::new();
    folder.write("g.gr", "1 1 S --> Word Word\nWord --> a\nWord --> b\n").write("corpus.txt", "a b\n");
    folder.train();
    let result = || {
        ["job.toml", "metrics.jsonl", "summary.json", "report.html", "model/model.bin"]
            .map(|name| fs::read(folder.path("out").join(name)).unwrap())
    };
    let earlier = result();
    folder.write("corpus.txt", "a b a\n");
    let output =
        folder.grammaton(&["train", "job.toml", "--quiet", "--overwrite", "--set", "inference.seed=9"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(result() == earlier);
}

#[test]
fn a_symbol_that_the_grammar_lacks_is_named() {
    let folder = Folder::new();
    folder.write("corpus.txt", "ab a\nba xb\n");
    folder.training_refuses(&[], &["corpus.txt:2", "no terminal `x`", "add a rule"]);
}

#[test]
fn sentence_with_an_unseen_symbol_is_printed_whole_and_the_others_are_parsed() {
    let folder = Folder::new();
    folder.train();
    folder.write("other.txt", "ab\nabxa\nyb\nba\n").write("strange.txt", "xyx\n");
    let parse = |args: &[&str]| {
        let output = folder.grammaton(&[&["parse", "out"], args].concat());
        let strict = folder.grammaton(&[&["parse", "out", "--strict"], args].concat());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        assert_eq!((output.status.code(), strict.status.code()), (Some(0), Some(1)));
        assert_eq!((&output.stdout, &output.stderr), (&strict.stdout, &strict.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    let (lines, messages) = parse(&["other.txt"]);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[1..3], ["abxa", "yb"]);
    assert_eq!([lines[0], lines[3]].map(|line| line.replace(' ', "")), ["ab", "ba"]);
    assert_eq!(
        messages,
        "notice: without an analysis and printed whole: 2 of 4 sentences, the first one in line 2; because of \
         symbols that the model does not know: 2, the first one `x` in line 2\n"
    );
    let (lines, messages) = parse(&["other.txt", "--format", "brackets"]);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!((lines[1..3].to_vec(), lines[0].starts_with("(S ")), (vec!["()", "()"], true), "{lines:?}");
    assert!(messages.contains("printed as `()`: 2 of 4"), "{messages}");
    assert_eq!(parse(&["strange.txt"]).0, "xyx\n");
}

#[test]
fn a_grammar_that_is_made_from_the_corpus_is_found_by_its_name() {
    let folder = Folder::new();
    folder.training_refuses(&["model.grammar=unigram"], &["no file unigram", "write \"auto:unigram\""]);
}

#[test]
fn missing_nonterminals_are_named() {
    let folder = Folder::new();
    folder.training_refuses(&["output.segments=[\"Wrod\"]"], &["output.segments", "did you mean \"Word\"?"]);
    folder.training_refuses(&["output.segments=[\"Syllable\"]"], &["choose from: S, Word, L"]);
    folder.write("g.gr", GRAMMAR.replace("Word", "W"));
    folder.training_refuses(&[], &["no nonterminal Word", "'output.segments=[\"W\"]'"]);
    folder.write("g.gr", GRAMMAR.replace("\nWord", "\n1 1 Word"));
    folder.training_refuses(&[], &["g.gr: no nonterminal is adapted", "leave the numbers"]);
}

#[test]
fn line_beyond_the_limit_is_refused() {
    let folder = Folder::new();
    folder.train();
    fs::remove_file(folder.path("out/summary.json")).unwrap();
    folder.write("corpus.txt", format!("ab a\n{}\n", "ab".repeat(50_000)));
    let parts = ["corpus.txt:2: the line that begins at byte 5 is longer than 10000 symbols", "split it"];
    folder.training_refuses(&[], &parts);
    folder.refuses(&["parse", "out", "corpus.txt"], &parts);
    folder.training_refuses(&["corpus.max_symbols=1"], &["corpus.txt:1", "longer than 1 symbols"]);
}

#[test]
#[ignore = "slow"]
fn limit_of_parse_can_be_raised() {
    let folder = Folder::new();
    folder.train();
    folder.write("long.txt", format!("{}\n", "ab".repeat(5_010)));
    let output = folder.grammaton(&["parse", "out", "long.txt", "--max-symbols", "20000"]);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "text to be parsed needs no gold");
    assert_eq!(output.stdout.iter().filter(|byte| byte.is_ascii_alphabetic()).count(), 10_020);
}

#[test]
fn corpus_without_sentences_is_refused() {
    let folder = Folder::new();
    for (empty, expected) in [("", "0 empty lines"), ("\n \n", "2 empty lines"), ("\u{feff}", "no sentences")]
    {
        folder.write("corpus.txt", empty);
        folder.training_refuses(&[], &["corpus.txt: the corpus has no sentences", expected]);
    }
}

#[test]
fn damaged_gzip_is_refused() {
    let folder = Folder::new();
    // `printf 'ab a\nba b\n' | gzip -n`
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x4c\x52\x48\xe4\x4a\x4a\x54\x48\xe2\x02\0\xd0\x61\x0d\x21\x0a\0\0\0";
    for bytes in [&gzip[..15], &gzip[..4], b"ab a\n", b""] {
        folder.write("corpus.txt.gz", bytes);
        folder.training_refuses(&["corpus.path=corpus.txt.gz"], &["corpus.txt.gz"]);
    }
    folder.write("corpus.txt.gz", &gzip[..15]);
    let parts = ["corpus.txt.gz:1: cannot decompress the corpus at byte", "cut short", "make it again"];
    folder.training_refuses(&["corpus.path=corpus.txt.gz"], &parts);
}

#[test]
fn a_file_as_output_folder_is_refused() {
    let folder = Folder::new();
    folder.write("file", "");
    for out in ["file", "file/out", "/proc/grammaton"] {
        let parts = [out, "cannot write to the output folder", "--out DIR"];
        folder.refuses(&["train", "job.toml", "--out", out], &parts);
    }
}

/// Runs with a limit on file sizes, which acts like a full disk; its signal is ignored.
#[test]
fn a_full_disk_leaves_no_result() {
    let folder = Folder::new();
    let corpus: String = (0..2000).map(|n| format!("{n:b}\n").replace('0', "a").replace('1', "b")).collect();
    folder.write("corpus.txt", corpus);
    let limited = |blocks: u32| {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).arg(binary());
        folder.run(shell, &["train", "job.toml", "--quiet", "--overwrite", "--set", "inference.max_rounds=3"])
    };
    let parts = ["out/", "cannot write the result", "free space", "--out DIR", "File too large"];
    folder.check(&limited(4), &parts);
    // An old result is not mistaken for the result of the failed run.
    folder.train();
    folder.check(&limited(4), &parts);
    let left: Vec<_> =
        fs::read_dir(folder.path("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
}

#[test]
fn damaged_model_is_refused() {
    let folder = Folder::new();
    folder.train();
    fs::remove_file(folder.path("out/summary.json")).unwrap();
    let model = fs::read(folder.path("out/model/model.bin")).unwrap();
    let refused = |bytes: &[u8], parts: &[&str]| {
        folder.write("m.bin", bytes);
        for args in [&["parse", "m.bin", "corpus.txt"][..], &["inspect", "m.bin"]] {
            folder.refuses(args, parts);
        }
    };
    for length in [9, 20, 100, model.len() - 1] {
        refused(&model[..length], &["m.bin", "cut short", "train again"]);
    }
    refused(b"", &["m.bin"]);
    refused(b"GRMT", &["m.bin"]);
    for at in (20..model.len()).step_by(97) {
        let mut damaged = model.clone();
        damaged[at] ^= 0x10;
        refused(&damaged, &["m.bin: model is damaged", "train again"]);
    }
    let mut newer = model.clone();
    newer[8] = 200;
    refused(&newer, &["m.bin: model format 200 is newer", "upgrade"]);
}

#[test]
fn unusable_treebanks_are_refused() {
    let folder = Folder::new();
    folder.write("job.toml", "[model]\nkind = \"pcfg-la\"\n[corpus]\npath = \"trees.mrg\"\n");
    folder.training_refuses(&[], &["trees.mrg", "cannot read the trees"]);
    folder.write("trees.mrg", "(S (N a) (V b))\n(S (N a)\n");
    folder.training_refuses(&[], &["trees.mrg:2"]);
    folder.write("trees.mrg", "");
    folder.training_refuses(&[], &["trees.mrg: no trees are left of 0", "brackets of the Penn Treebank"]);
    folder.write("trees.mrg", "(S (N a) (V b))\n(S (N c) (V b))\n");
    folder.training_refuses(&["corpus.max_length=1"], &["trees.mrg: no trees are left of 2"]);
    folder.training_refuses(&["corpus.held_out_share=0.1"], &["corpus.held_out_share: 0.1 of 2 trees"]);
    folder.training_refuses(&["corpus.held_out=no.mrg"], &["no.mrg: cannot read the trees"]);
    let subtypes = ["inference.subtypes must be from 1 to 16, found 17"];
    folder.training_refuses(&["inference.subtypes=17"], &subtypes);
    folder.training_refuses(&["inference.method=gibbs"], &["\"em\", \"vb\" or \"cvb\""]);
    folder.training_refuses(&["inference.start=trees"], &["inference.start must be \"noise\""]);
    folder.training_refuses(
        &["inference.patience=2"],
        &["inference.patience is not read in this job (pcfg-la by vb)"],
    );
    folder.training_refuses(&["model.grammar=g.gr"], &["model.grammar must be left out", "found g.gr"]);
    folder
        .training_refuses(&["model.kind=pcfg", "model.grammar=auto:treebank"], &["model.kind = \"pcfg-la\""]);
    folder.train();
    fs::remove_file(folder.path("out/summary.json")).unwrap();
    folder.refuses(&["parse", "out", "corpus.txt", "--decoder", "mbr"], &["--decoder max-rule"]);
}

/// Rules of words of letters, of which `Word` is adapted if `adapted`.
fn letters(adapted: bool) -> String {
    let word = if adapted { "Word" } else { "1 1 Word" };
    format!(
        "1 1 S --> Word\n1 1 S --> Word S\n{word} --> Ls\n1 1 Ls --> L\n1 1 Ls --> L Ls\n1 1 L --> a\n1 1 L --> b\n1 1 L --> c\n"
    )
}

/// Settings of a job that starts from the trees of a file.
fn from_trees(kind: &str, method: &str) -> Vec<String> {
    let settings = [
        ("model.kind", kind),
        ("inference.method", method),
        ("inference.max_rounds", "3"),
        ("inference.start", "trees"),
        ("inference.start_from", "start.trees"),
    ];
    settings.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

const TREES: [&str; 2] =
    ["(S (Word (Ls (L a) (Ls (L b)))) (S (Word (Ls (L a)))))", "(S (Word (Ls (L b) (Ls (L a) (Ls (L b))))))"];

#[test]
fn trees_to_start_from_are_those_of_the_sentences() {
    let folder = Folder::new();
    folder.write("g.gr", letters(true));
    let settings = from_trees("adaptor", "hastings");
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let [first, second] = TREES;
    for (trees, parts) in [
        (vec![], ["start.trees: found 0 trees", "each of the 2 sentences"]),
        (vec![first], ["start.trees: found 1 trees", "each of the 2 sentences"]),
        (vec![first, second, first], ["start.trees: found 3 trees", "each of the 2 sentences"]),
        (vec![second, first], ["start.trees:", "this tree is not of its sentence, corpus.txt:"]),
        (
            vec![first, "(S (Word (Ls (L b) (Ls (L d)))))"],
            ["start.trees:2:", "the grammar has no symbol `d`"],
        ),
        (vec![first, "(S (Word (L b)))"], ["start.trees:2:", "the grammar has no rule `Word --> L`"]),
        (vec![first, "(S (Word#x (Ls (L b))))"], ["start.trees:2:", "the grammar has no symbol `Word#x`"]),
        (vec![first, "(S (Word"], ["start.trees:2:", "not a tree"]),
    ] {
        folder.write("start.trees", trees.join("\n"));
        folder.training_refuses(&settings, &parts);
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let args: Vec<&str> = ["check", "job.toml"].into_iter().chain(settings).collect();
        folder.refuses(&args, &parts);
    }
}

#[test]
fn numbers_of_customers_in_trees_to_start_from_change_nothing() {
    let folder = Folder::new();
    folder.write("g.gr", letters(true));
    let digest = |trees: String| {
        folder.write("start.trees", trees);
        let settings = from_trees("adaptor", "hastings");
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let args: Vec<&str> =
            ["train", "job.toml", "--quiet", "--overwrite"].into_iter().chain(settings).collect();
        let output = folder.grammaton(&args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let summary = fs::read_to_string(folder.path("out/summary.json")).unwrap();
        summary.lines().find(|line| line.contains("parameters_sha256")).unwrap().to_owned()
    };
    let plain = TREES.join("\n");
    assert_eq!(digest(plain.replace("(Word ", "(Word#12 ")), digest(plain));
}

#[test]
fn em_refuses_a_start_under_which_a_sentence_has_probability_zero() {
    let folder = Folder::new();
    folder.write("g.gr", letters(false)).write("start.trees", "(S (Word (Ls (L a))))\n");
    let settings = from_trees("pcfg", "em");
    let mut settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let parts = ["corpus.txt:1: aba: a sentence has probability 0 under the start", "map-em"];
    folder.training_refuses(&settings, &parts);
    settings.push("corpus.on_unparsable=skip");
    folder.training_refuses(&settings, &parts);
    // The rules that sentences need, and no others.
    folder.write("start.trees", TREES.join("\n"));
    let settings = from_trees("pcfg", "em");
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    let args: Vec<&str> =
        ["train", "job.toml", "--quiet", "--overwrite"].into_iter().chain(settings).collect();
    let output = folder.grammaton(&args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn pseudo_counts_that_no_model_can_have_are_refused_before_training() {
    let folder = Folder::new();
    folder.write("g.gr", letters(false));
    let vb = ["model.kind=pcfg", "inference.method=vb", "inference.alpha=1e-300"];
    folder.training_refuses(&vb, &["inference.alpha must be from 1e-100 to 1000000, found 1e-300"]);
    folder.write("g.gr", letters(false).replace("1 1 L --> b", "1e-300 1 L --> b"));
    folder.training_refuses(
        &vb[..2],
        &["the weight of a rule of `L` must be from 1e-100 to 1e100, found 1e-300"],
    );
}
