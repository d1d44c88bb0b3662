//! `grammaton dependencies`: heads of any file of tagged words, rules, and heads that are known.

use std::fs;
use std::io::Write as _;

use assert_cmd::Command;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::cli::{at, folder, grammaton, refused, stdout};

/// Sentences of a determiner, a noun and a verb, with heads and a comma in the longer ones.
fn treebank(heads: bool) -> String {
    let short = [("the", "DET", 2), ("dog", "NOUN", 3), ("barks", "VERB", 0)];
    let long = [
        ("the", "DET", 2),
        ("dog", "NOUN", 3),
        ("barks", "VERB", 0),
        (",", "PUNCT", 7),
        ("a", "DET", 6),
        ("cat", "NOUN", 7),
        ("sleeps", "VERB", 3),
    ];
    let sentence = |words: &[(&str, &str, u32)]| -> String {
        let line = |(at, (word, tag, head)): (usize, &(&str, &str, u32))| {
            let head = if heads { head.to_string() } else { "_".to_owned() };
            format!("{}\t{word}\t_\t{tag}\t_\t_\t{head}\t_\t_\t_\n", at + 1)
        };
        (words.iter().enumerate().map(line)).collect::<String>() + "\n"
    };
    format!(
        "# newdoc\n{}{}{}",
        sentence(&short),
        sentence(&long),
        sentence(&short[1..]).replace("\t3\t", "\t2\t")
    )
}

fn heads(conllu: &str) -> Vec<String> {
    let words = conllu.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    words.map(|line| line.split('\t').nth(6).unwrap().to_owned()).collect()
}

#[test]
fn heads_are_found_and_the_rest_stays() {
    let dir =
        folder(&[("gold.conllu", treebank(true).as_bytes()), ("bare.conllu", treebank(false).as_bytes())]);
    let found = stdout(&grammaton(&["dependencies", &at(&dir, "bare.conllu"), "--quiet"]).success());
    // Rules find these; punctuation depends on the word before it.
    assert_eq!(heads(&found), ["2", "3", "0", "2", "3", "0", "3", "6", "7", "3", "2", "0"]);
    assert!(found.starts_with("# newdoc\n1\tthe\t_\tDET"), "{found}");
    // Gold is for scores alone.
    let out = at(&dir, "out");
    let run = grammaton(&["dependencies", &at(&dir, "gold.conllu"), "--out", &out]).success();
    let log = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(log.contains("the rules \"ud\" of strength 2 are put in, not learned"), "{log}");
    assert!(log.contains("mbr-arcs attachment 1.0000") && log.contains("baseline attach-right"), "{log}");
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(heads(&read("out/dependencies.conllu")), heads(&found));
    let parsed =
        stdout(&grammaton(&["parse", &out, &at(&dir, "bare.conllu"), "--decoder", "mbr-arcs"]).success());
    assert_eq!(parsed, found, "the model has the rules");
    grammaton(&["train", &at(&dir, "out/job.toml"), "--out", &at(&dir, "again"), "-q"]).success();
    assert_eq!(read("again/parses.mbr-arcs.conllu"), read("out/dependencies.conllu"));
    refused(
        &["dependencies", &at(&dir, "bare.conllu"), "--out", &out],
        &["has a finished result", "--overwrite"],
    );
    fs::write(dir.path().join("corpus.conllu"), "mine").unwrap();
    let here = dir.path().display().to_string();
    refused(
        &["dependencies", &at(&dir, "bare.conllu"), "--out", &here],
        &["corpus.conllu: the file would be overwritten"],
    );
}

#[test]
fn rules_are_of_the_user() {
    let rules = "rules = [\n  { root = [\"DET\"], weight = 10 },\n  { head = [\"DET\"], child = [\"NOUN\", \"VERB\"], weight = 10 }\n]\n";
    let dir = folder(&[
        ("bare.conllu", treebank(false).as_bytes()),
        ("rules.toml", rules.as_bytes()),
        ("wrong.toml", b"rules = [\n  { root = [\"DET\"] }\n]\n"),
        ("other.toml", b"rules = [{ root = [\"DT\"], weight = 1 }]\n"),
        ("penn.tsv", b"the\tDT\ndog\tNN\nbarks\tVBZ\n\ndogs\tNNS\nbark\tVBP\n"),
    ]);
    let file = at(&dir, "bare.conllu");
    let with =
        |rules: &str| stdout(&grammaton(&["dependencies", &file, "--quiet", "--rules", rules]).success());
    assert_eq!(heads(&with(&at(&dir, "rules.toml")))[..3], ["0", "1", "1"]);
    for (rules, parts) in [
        (at(&dir, "wrong.toml"), ["wrong.toml: rule 1: ", "a rule needs a `weight`"]),
        (at(&dir, "other.toml"), ["--rules: `root` of a rule", "did you mean `DET`?"]),
        ("udd".to_owned(), ["--rules udd: expected none, ud, or a file of rules", "udd"]),
    ] {
        refused(&["dependencies", &file, "--rules", &rules], &parts);
    }
    let penn = at(&dir, "penn.tsv");
    let run = grammaton(&["dependencies", &penn]).success();
    let log = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(log.contains("the tags are not universal, so that no rules are used"), "{log}");
    refused(
        &["dependencies", &penn, "--rules", "ud"],
        &["penn.tsv: --rules: the rules \"ud\" are of universal tags"],
    );
}

#[test]
fn without_rules_counts_of_the_text_say_which_tags_govern() {
    let others = [("dog", "cow"), ("barks", "moos"), ("cat", "hen"), ("sleeps", "clucks")];
    let other = others.iter().fold(treebank(false), |text, (word, other)| text.replace(word, other));
    let text = treebank(false) + &other;
    let dir = folder(&[("bare.conllu", text.as_bytes()), ("empty.toml", b"rules = []\n")]);
    let (file, out, plain) = (at(&dir, "bare.conllu"), at(&dir, "out"), at(&dir, "plain"));
    let run = grammaton(&["dependencies", &file, "--rules", "none", "--out", &out]).success();
    let log = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(log.contains("no knowledge of the tags is used; counts of the words and tags"), "{log}");
    assert!(log.contains("4 rules of strength 1 are put in before training"), "{log}");
    let job = fs::read_to_string(dir.path().join("out/job.toml")).unwrap();
    // Determiners are the most frequent words, and missing in some sentences.
    let weight = |tag: &str| -> f64 {
        let rule = job.lines().find(|line| line.contains(&format!("[\"{tag}\"]"))).unwrap();
        rule.split("weight = ").nth(1).unwrap().trim_end_matches([' ', '}', ',']).parse().unwrap()
    };
    assert!(weight("DET") < weight("NOUN") && weight("DET") < weight("VERB"), "{job}");
    assert!(job.contains("across = \"punctuation\", weight = -1.0"), "{job}");
    let parsed = stdout(&grammaton(&["parse", &out, &file, "--decoder", "mbr-arcs"]).success());
    assert_eq!(parsed, fs::read_to_string(dir.path().join("out/dependencies.conllu")).unwrap());
    // An empty file of rules leaves them out too.
    let rules = at(&dir, "empty.toml");
    let run = grammaton(&["dependencies", &file, "--rules", &rules, "--out", &plain]).success();
    let log = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(!log.contains("knowledge") && !log.contains("put in"), "{log}");
}

#[test]
fn sentences_come_from_standard_input() {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(treebank(false).as_bytes()).unwrap();
    let dir =
        folder(&[("bare.conllu", treebank(false).as_bytes()), ("bare.conllu.gz", &gzip.finish().unwrap())]);
    let expected = stdout(&grammaton(&["dependencies", &at(&dir, "bare.conllu"), "--quiet"]).success());
    let unpacked = stdout(&grammaton(&["dependencies", &at(&dir, "bare.conllu.gz"), "--quiet"]).success());
    assert_eq!(unpacked, expected);
    let given = |text: String, out: &str| {
        let args = ["dependencies", "-", "--quiet", "--out", out];
        Command::cargo_bin("grammaton").unwrap().args(args).write_stdin(text).assert()
    };
    let out = at(&dir, "out");
    given(treebank(false), &out).success();
    assert_eq!(fs::read_to_string(dir.path().join("out/dependencies.conllu")).unwrap(), expected);
    let error = given("a\tb\tc\td\n".to_owned(), &at(&dir, "other")).code(2);
    let log = String::from_utf8(error.get_output().stderr.clone()).unwrap();
    assert!(log.starts_with("error: standard input:1: found 4 columns between tabs"), "{log}");
}

#[test]
fn parameters_are_shown_as_tables() {
    let prior = |prior: &str, out: &str| {
        format!(
            "[model]\nkind = \"dmv\"\n[corpus]\npath = \"gold.conllu\"\n[inference]\n{prior}max_rounds = 3\n[output]\ndir = \"{out}\"\n"
        )
    };
    let (vb, normal) = (prior("", "vb"), prior("prior = \"logistic-normal\"\n", "normal"));
    let dir = folder(&[
        ("gold.conllu", treebank(true).as_bytes()),
        ("vb.toml", vb.as_bytes()),
        ("normal.toml", normal.as_bytes()),
    ]);
    for job in ["vb.toml", "normal.toml"] {
        grammaton(&["train", &at(&dir, job), "--quiet"]).success();
    }
    let table = |model: &str, name: &str| {
        stdout(&grammaton(&["inspect", &at(&dir, model), "--table", name]).success())
    };
    let rows = |table: &str| -> Vec<Vec<String>> {
        table.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    };
    let probability = |row: &Vec<String>| row.last().unwrap().parse::<f64>().unwrap();
    for model in ["vb", "normal"] {
        let roots = table(model, "roots");
        assert!(roots.starts_with("root\tprobability\n"), "{roots}");
        assert!((rows(&roots).iter().map(probability).sum::<f64>() - 1.0).abs() < 1e-5, "{roots}");
        let attachments = table(model, "attachments");
        assert!(attachments.starts_with("head\tside\tchild\tprobability\nDET\tleft\t"), "{attachments}");
        let of_three = rows(&attachments);
        assert_eq!(of_three.len(), 3 * 2 * 3);
        for children in of_three.chunks(3) {
            let found: Vec<f64> = children.iter().map(probability).collect();
            assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{attachments}");
            assert!(found.is_sorted_by(|one, other| one >= other), "{attachments}");
        }
        let stops = table(model, "stops");
        assert!(stops.starts_with("head\tside\tchildren\tprobability\nDET\tleft\tnone\t"), "{stops}");
        assert_eq!(rows(&stops).len(), 3 * 2 * 2);
    }
    let means = table("normal", "means");
    assert!(means.starts_with("event\tmean\tvariance\nroot DET\t"), "{means}");
    assert_eq!(rows(&means).len(), 3 + 3 * 2 * (3 + 2 * 2));
    let covariances = table("normal", "covariances");
    assert!(covariances.starts_with("event\tother\tcovariance\tcorrelation\nroot DET\troot NOUN\t"));
    assert!(rows(&covariances).iter().all(|row| probability(row).abs() <= 1.0), "{covariances}");
    refused(
        &["inspect", &at(&dir, "vb"), "--table", "means"],
        &["--table: means and covariances are of logistic-normal priors", "Dirichlet"],
    );
}

#[test]
fn known_heads_are_kept() {
    let partly = treebank(false).replacen("1\tthe\t_\tDET\t_\t_\t_", "1\tthe\t_\tDET\t_\t_\t3", 1);
    // 1 → 3 and 4 → 2 cross.
    let crossing = "1\ta\t_\tDET\t_\t_\t_\t_\t_\t_\n2\tb\t_\tNOUN\t_\t_\t4\t_\t_\t_\n3\tc\t_\tNOUN\t_\t_\t1\t_\t_\t_\n4\td\t_\tVERB\t_\t_\t_\t_\t_\t_\n\n";
    let dir = folder(&[
        ("partly.conllu", partly.as_bytes()),
        ("crossing.conllu", (treebank(false) + crossing).as_bytes()),
        ("rare.conllu", (treebank(false) + &crossing.replace("NOUN", "SYM")).as_bytes()),
    ]);
    let constrained = |name: &str| grammaton(&["dependencies", &at(&dir, name), "--constrain"]).success();
    let found = stdout(&constrained("partly.conllu"));
    assert_eq!(heads(&found)[..4], ["3", "3", "0", "2"]);
    let run = constrained("crossing.conllu");
    let log = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(
        log.contains("crossing.conllu:17: no projective tree with one root has the given heads"),
        "{log}"
    );
    let found = heads(&stdout(&run));
    assert_eq!(found[12..], ["_"; 4]);
    // A tag of that sentence alone has no bias.
    grammaton(&["dependencies", &at(&dir, "rare.conllu"), "--constrain", "--rules", "none"]).success();
    let out = at(&dir, "out");
    grammaton(&["dependencies", &at(&dir, "crossing.conllu"), "--constrain", "--quiet", "--out", &out])
        .success();
    refused(
        &[
            "train",
            &at(&dir, "out/job.toml"),
            "--out",
            &at(&dir, "again"),
            "--set",
            "corpus.on_unparsable=error",
        ],
        &["corpus.conllu:17: no projective tree with one root", "on_unparsable"],
    );
    // Chains have neither.
    let again = at(&dir, "again");
    let chain = ["train", &at(&dir, "out/job.toml"), "--out", &again, "--set", "inference.method=hastings"];
    let run = grammaton(&chain).success();
    let log = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(log.contains("do not read it: corpus.heads, inference.backoff, inference.rules"), "{log}");
    assert!(!log.contains("no projective tree") && !log.contains("put in"), "{log}");
}

#[test]
fn long_sentences_hang_on_the_next_word() {
    let word = |at: usize| format!("{at}\tw\t_\t{}\t_\t_\t_\t_\t_\t_\n", ["DET", "NOUN"][at % 2]);
    let long: String = (1..=201).map(word).collect();
    let dir = folder(&[("long.conllu", (treebank(false) + &long + "\n").as_bytes())]);
    let run = grammaton(&["dependencies", &at(&dir, "long.conllu")]).success();
    let log = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(log.contains("1 sentences have no derivation") && log.contains("more than 200 words"), "{log}");
    let found = heads(&stdout(&run));
    assert_eq!((found[12].as_str(), found[12 + 200].as_str()), ("2", "0"));
    assert_eq!(found[..3], ["2", "3", "0"]);
}

/// Sentences without tags, a line each.
const RAW: &str = "the dog barks\nThe dog barks , a cat sleeps .\na dog sleeps\nthe cat barks\na cat barks !\n\n# a dog barks\n";

/// The same in CoNLL-U, with tags that say nothing of the words.
fn as_conllu(tag: &str) -> String {
    let sentence = |line: &str| -> String {
        let words = (1..).zip(line.split_whitespace());
        words.map(|(at, word)| format!("{at}\t{word}\t_\t{tag}\t_\t_\t_\t_\t_\t_\n")).collect::<String>()
            + "\n"
    };
    RAW.lines().filter(|line| !line.is_empty()).map(sentence).collect()
}

#[test]
fn tags_are_induced_from_a_text() {
    let dir = folder(&[
        ("raw.txt", RAW.as_bytes()),
        ("bare.conllu", as_conllu("_").as_bytes()),
        ("tagged.conllu", as_conllu("NOUN").as_bytes()),
    ]);
    let (raw, out) = (at(&dir, "raw.txt"), at(&dir, "out"));
    let run = grammaton(&["dependencies", &raw, "--tags", "induce", "--out", &out]).success();
    let log = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(log.contains("notice: tags are induced"), "{log}");
    let found = fs::read_to_string(dir.path().join("out/dependencies.conllu")).unwrap();
    assert_eq!(heads(&found).len(), RAW.split_whitespace().count());
    assert!(found.contains("4\t,\t_\tPUNCT\t_\t") && found.contains("1\tThe\t_\t_\tclass"), "{found}");
    // The same words give the same trees, whatever their tags; without any tag, by default.
    for arguments in
        [&["bare.conllu"][..], &["bare.conllu", "--workers", "1"], &["tagged.conllu", "--tags", "induce"]]
    {
        let file = at(&dir, arguments[0]);
        let all: Vec<&str> =
            ["dependencies", &file, "--quiet"].into_iter().chain(arguments[1..].iter().copied()).collect();
        assert_eq!(stdout(&grammaton(&all).success()), found, "{arguments:?}");
    }
    // Words have the classes that they had in training, in any format.
    for file in ["raw.txt", "bare.conllu", "out/corpus.conllu"] {
        assert_eq!(stdout(&grammaton(&["parse", &out, &at(&dir, file)]).success()), found, "{file}");
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(RAW.as_bytes()).unwrap();
    fs::write(dir.path().join("raw.txt.gz"), packed.finish().unwrap()).unwrap();
    let packed = at(&dir, "raw.txt.gz");
    assert_eq!(stdout(&grammaton(&["parse", &out, &packed]).success()), found);
    assert_eq!(stdout(&grammaton(&["dependencies", &packed, "--tags", "induce", "-q"]).success()), found);
    fs::write(dir.path().join("new.txt"), "the hen clucks\n").unwrap();
    assert_eq!(heads(&stdout(&grammaton(&["parse", &out, &at(&dir, "new.txt")]).success())).len(), 3);
    for (file, arguments, message) in [
        (
            "raw.txt",
            &[][..],
            "raw.txt: no tabs separate words, tags and heads; for a text with one sentence a line, use --tags induce",
        ),
        (
            "raw.txt",
            &["--tags", "induce", "--rules", "ud"],
            "raw.txt: --rules ud is of universal tags, and the tags are induced",
        ),
    ] {
        let file = at(&dir, file);
        let all: Vec<&str> = ["dependencies", &file].into_iter().chain(arguments.iter().copied()).collect();
        refused(&all, &[message]);
    }
    let spaces = as_conllu("_").replace('\t', " ");
    fs::write(dir.path().join("spaces.conllu"), spaces).unwrap();
    refused(
        &["dependencies", &at(&dir, "spaces.conllu"), "--tags", "induce"],
        &["spaces.conllu:1: found 10 columns between spaces, expected tabs"],
    );
    fs::remove_file(dir.path().join("out/classes.tsv")).unwrap();
    refused(
        &["parse", &out, &raw],
        &["classes.tsv: cannot read the word classes that are the tags of the model"],
    );
    fs::write(dir.path().join("out/classes.tsv"), "word\tthe\n").unwrap();
    refused(&["parse", &out, &raw], &["classes.tsv: line 1: expected `word` or `ending`"]);
}
