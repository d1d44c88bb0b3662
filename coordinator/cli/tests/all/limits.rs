//! Small files that declare enormous models, read by the real binary in bounded memory.
//!
//! Law: a file beyond a limit is refused when it is read, with exit code 2 and one line with path, size and limit. A file within the
//! limits is trained on, even if rules are deep or long.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

/// Largest file of a case, in bytes.
const SMALL: usize = 3 << 20;
/// Address space of the process, in KiB, including stacks.
const MEMORY: usize = 6 << 20;

/// A job and its files.
struct Case {
    name: &'static str,
    job: String,
    files: Vec<(&'static str, Vec<u8>)>,
}

impl Case {
    fn new(
        name: &'static str,
        model: &str,
        corpus: &str,
        inference: &str,
        files: &[(&'static str, String)],
    ) -> Case {
        let job = format!("[model]\n{model}\n[corpus]\n{corpus}\n[inference]\nmax_rounds = 1\n{inference}\n");
        let files = files.iter().map(|(name, text)| (*name, text.as_bytes().to_vec())).collect();
        Case { name, job, files }
    }

    /// A PCFG with this grammar over a few words.
    fn grammar(name: &'static str, grammar: String) -> Case {
        let files = [("g.gr", grammar), ("c.txt", "a b\nb a\n".to_owned())];
        Case::new(name, PCFG, TOKENS, "method = \"em\"", &files)
    }

    fn run(&self) -> Output {
        self.run_with(&["--quiet"])
    }

    fn run_with(&self, more: &[&str]) -> Output {
        let folder: TempDir = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("job.toml"), &self.job).unwrap();
        for (name, bytes) in &self.files {
            assert!(bytes.len() <= SMALL, "{}: {name} has {} bytes", self.name, bytes.len());
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        let script = format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).arg(PathBuf::from(env!("CARGO_BIN_EXE_grammaton")));
        shell.args(["train", "job.toml", "--workers", "1"]).args(more).current_dir(folder.path());
        shell.env_remove("GRAMMATON_LOG").output().unwrap()
    }
}

const PCFG: &str = "kind = \"pcfg\"\ngrammar = \"g.gr\"";
const TOKENS: &str = "path = \"c.txt\"\nformat = \"tokens\"";
const FEW: &str = "1 1 S --> S S\n1 1 S --> a\n1 1 S --> b\n";
const SUBSTRINGS: &str = "1 1 S --> W\n1 1 S --> W S\n1 1 W --> <substrings>\n";

fn lines(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(|at| line(at) + "\n").collect()
}

/// A string of `n` symbols of two kinds with few repeated substrings.
fn letters(n: usize, mut state: u64) -> String {
    let mut letter = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        if state >> 63 == 0 { "a" } else { "b" }
    };
    (0..n).map(|_| letter()).collect::<Vec<_>>().join(" ")
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(text).unwrap();
    gzip.finish().unwrap()
}

/// Refused cases, with parts of the error.
fn beyond_limits() -> Vec<(Case, [&'static str; 2])> {
    let dmv = |corpus: String| {
        Case::new("tags", "kind = \"dmv\"", "path = \"c.tsv\"", "method = \"em\"", &[("c.tsv", corpus)])
    };
    let pairs = |at: usize| format!("w\tt{}\t2\nv\tt{}\t0\n", 2 * at, 2 * at + 1);
    let symbols = lines(280, |at| {
        format!(
            "1 1 S --> {}",
            (0..1000).map(|word| format!("{:x}", 1000 * at + word)).collect::<Vec<_>>().join(" ")
        )
    });
    let chain = lines(70_000, |at| format!("1 1 N{at} --> N{}", at + 1)) + "1 1 N70000 --> a\n";
    let outcomes = lines(150, |at| format!("1 1 S --> Y{at} S"))
        + &lines(150, |at| lines(950, |word| format!("1 1 Y{at} --> {word:x}")));
    let zeros = gzip(&[&b"a\n"[..], &vec![b'\n'; 64 << 20]].concat());
    let many = gzip((("a b ".repeat(430) + "\n").repeat(5_000)).as_bytes());
    let with = |name, model: &str, corpus: &str, bytes: &Vec<u8>| {
        let mut case = Case::new(name, model, corpus, "method = \"em\"", &[("g.gr", FEW.to_owned())]);
        case.files.push(("c.gz", bytes.clone()));
        case
    };
    let packed = |name, model: &str, corpus: &str| with(name, model, corpus, &zeros);
    let strings = |name, corpus: String, max_string: usize| {
        let inference = format!("method = \"em\"\nmax_string = {max_string}");
        Case::new(name, PCFG, TOKENS, &inference, &[("g.gr", SUBSTRINGS.to_owned()), ("c.txt", corpus)])
    };
    let trees = lines(60_000, |at| format!("(S (A{at} (B{at} a) (C{at} b)) (D{at} c))"));
    vec![
        (dmv(lines(10_000, pairs)), ["c.tsv", "512 tags or fewer, found 20000"]),
        (Case::grammar("symbols", symbols), ["g.gr", "280001 symbols, expected at most 262144"]),
        (
            Case::grammar("nonterminals", chain),
            ["g.gr", "pairs of a nonterminal and a symbol, expected at most 4294967296"],
        ),
        (
            Case::grammar("right-hand side", format!("{FEW}1 1 S --> {}\n", letters(30_000, 1))),
            ["g.gr:4:", "`S` has 30000 symbols, expected at most 1024"],
        ),
        (
            strings("substrings of a sentence", letters(9_999, 1) + "\n", 10_000),
            ["c.txt", "a sentence of 9999 symbols has substrings of up to 10000"],
        ),
        (
            strings("substrings", lines(40, |at| letters(1_000, at as u64)), 1_000),
            ["c.txt", "symbols together, expected at most 33554432 of 268435456 symbols"],
        ),
        (
            Case::new(
                "latent",
                "kind = \"pcfg-la\"",
                "path = \"c.mrg\"",
                "subtypes = 16",
                &[("c.mrg", trees)],
            ),
            ["c.mrg", "weights, expected at most 134217728"],
        ),
        (
            Case::new(
                "covariances",
                PCFG,
                TOKENS,
                "method = \"vb\"\nprior = \"logistic-normal\"",
                &[("g.gr", outcomes + "1 1 S --> a\n"), ("c.txt", "a\n".to_owned())],
            ),
            ["g.gr", "entries, expected at most 134217728"],
        ),
        (
            packed("gzip", PCFG, "path = \"c.gz\"\nformat = \"tokens\""),
            ["c.gz", "expected at most 256 times"],
        ),
        (
            packed("gzip of heads", "kind = \"dmv\"", "path = \"c.gz\""),
            ["c.gz", "expected at most 256 times"],
        ),
        (
            with("shard", PCFG, "path = \"c.gz\"\nformat = \"tokens\"\nshard_symbols = 0", &many),
            ["c.gz: a shard would have 4300000 symbols", "may have 4194304"],
        ),
    ]
}

#[test]
#[ignore = "slow"]
fn inputs_beyond_a_limit_are_refused_in_one_line() {
    for (case, parts) in beyond_limits() {
        let output = case.run();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{}: {}: {printed}", case.name, output.status);
        assert_eq!(printed.trim_end().lines().count(), 1, "{}: {printed}", case.name);
        for part in parts {
            assert!(printed.contains(part), "{}: {part:?} is not in: {printed}", case.name);
        }
    }
}

/// Workers count derivations while they find them. Such a sentence is refused with its line, or skipped and named, whether the job has forests
/// or chains, which hold all derivations of a sentence.
#[test]
#[ignore = "slow"]
fn a_sentence_with_too_many_derivations_is_refused_or_skipped() {
    let adapted = FEW.to_owned() + "Word --> S b\n1 1 S --> Word a\n";
    let chains = "kind = \"adaptor\"\ngrammar = \"g.gr\"";
    let models = [
        ("forests", PCFG, FEW, "method = \"em\""),
        ("chains", chains, &adapted, "method = \"hastings\"\nsweeps = 2"),
    ];
    for (name, model, grammar, inference) in models {
        let files = [("g.gr", grammar.to_owned()), ("c.txt", letters(3_000, 1) + "\n")];
        let output = Case::new(name, model, TOKENS, inference, &files).run();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {printed}");
        let last = printed.trim_end().lines().last().unwrap_or_default();
        assert!(last.contains("a sentence of 3000 symbols has too many derivations"), "{name}: {printed}");
        assert!(last.contains("c.txt:1: ") && last.contains("split the sentence"), "{name}: {printed}");
        let files =
            [("g.gr", grammar.to_owned()), ("c.txt", letters(30, 2) + "\n" + &letters(3_000, 1) + "\n")];
        let skipping = format!("{TOKENS}\non_unparsable = \"skip\"");
        let output = Case::new("skipped", model, &skipping, inference, &files).run_with(&[]);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{name}: {printed}");
        let notice =
            "skipped 1 sentences whose derivations would take more than 2048 MiB, the first one in line 2: ";
        assert!(printed.contains(notice), "{name}: {printed}");
    }
}

#[test]
fn deep_and_long_rules_within_the_limits_are_trained_on() {
    let unary =
        lines(20_000, |at| format!("1 1 C{at} --> C{}", at + 1)) + "1 1 C20000 --> a\n1 1 C20000 --> b\n";
    let long = lines(200, |at| format!("1 1 S --> {} x{at}", letters(1_000, at as u64)));
    let deep = "(S ".repeat(100_000) + "(A a)" + &")".repeat(100_000) + "\n";
    let cases = [
        Case::grammar("unary chain", format!("1 1 S --> S S\n1 1 S --> C0\n{unary}")),
        Case::grammar("long right-hand sides", FEW.to_owned() + &long),
        Case::new("deep brackets", "kind = \"pcfg-la\"", "path = \"c.mrg\"", "", &[("c.mrg", deep)]),
    ];
    for case in cases {
        let output = case.run();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{}: {}: {printed}", case.name, output.status);
    }
}
