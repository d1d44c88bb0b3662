//! `grammaton morphemes`: the lines of any list of words, and known affixes.

use std::fs;

use super::cli::{at, folder, grammaton, refused, stdout};

fn morphemes(args: &[&str]) -> String {
    stdout(
        &grammaton(&[&["morphemes", "--quiet", "--sweeps", "6", "--chains", "2"], args].concat()).success(),
    )
}

#[test]
fn every_line_is_the_word_with_spaces_between_its_morphemes() {
    let long = "ab".repeat(50);
    let text = format!("unlocked\nun lock ing\n\nслово\nსიტყვა\nكلمات\n字\ne\u{301}te\u{301}\n{long}\nx\n");
    let dir = folder(&[("words.txt", text.as_bytes())]);
    for grammar in ["morph0", "morph1", "morph2", "morph3", "morph13", "morph15", "morph18", "morph19"] {
        let found = morphemes(&[&at(&dir, "words.txt"), "--grammar", grammar]);
        let bare = |text: &str| text.lines().map(|line| line.replace(' ', "")).collect::<Vec<_>>();
        assert_eq!(bare(&found), bare(&text), "{grammar}");
        assert!(found.lines().all(|line| line.split(' ').all(|morpheme| !morpheme.starts_with('\u{301}'))));
    }
}

#[test]
fn known_affixes_are_rules_of_the_job_that_is_written() {
    let words = "pre\u{301}go\npre\u{301}do\nundo\nungo\ngoing\ndoing\n";
    let dir = folder(&[
        ("words.txt", words.as_bytes()),
        ("pre.txt", "pre\u{301}\nun\nzz\n".as_bytes()),
        ("suf.txt", b"ing\n"),
    ]);
    let (text, out) = (at(&dir, "words.txt"), at(&dir, "out"));
    let args = ["--prefixes", &at(&dir, "pre.txt"), "--suffixes", &at(&dir, "suf.txt"), "--out", &out];
    morphemes(&[&[&text[..]], &args[..]].concat());
    let grammar = fs::read_to_string(dir.path().join("out/model/grammar.txt")).unwrap();
    // Two numbers: not adapted.
    for rule in
        ["1 1 PrefixMorph --> u n\n", "1 1 PrefixMorph --> p r e\u{301}\n", "1 1 SuffixMorph --> i n g\n"]
    {
        assert!(grammar.contains(rule), "{rule}");
    }
    assert!(!grammar.contains("z z"));
    let sha256 = |out: &str| {
        let summary = fs::read_to_string(dir.path().join(out).join("summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
        summary["parameters_sha256"].as_str().unwrap().to_owned()
    };
    grammaton(&["train", &at(&dir, "out/job.toml"), "--out", &at(&dir, "again"), "-q"]).success();
    assert_eq!(sha256("out"), sha256("again"));
}

#[test]
fn a_cascade_knows_the_affixes_that_its_first_run_uses_most() {
    let stems = ["go", "do", "lock", "pack", "load", "tie"];
    let words: Vec<String> = stems
        .iter()
        .flat_map(|stem| {
            ["", "un", "re"].map(|prefix| ["", "ing", "s"].map(|suffix| format!("{prefix}{stem}{suffix}")))
        })
        .flatten()
        .collect();
    let dir = folder(&[("words.txt", words.join("\n").as_bytes())]);
    let out = at(&dir, "out");
    morphemes(&[&at(&dir, "words.txt"), "--cascade=3", "--grammar", "morph1", "--out", &out]);
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let (job, grammar) = (read("out/job.toml"), read("out/model/grammar.txt"));
    assert!(job.contains("auto:morph1\"\ncascade = 3\n"), "{job}");
    for morph in ["PrefixMorph", "SuffixMorph"] {
        // Rules of letters, beside that of submorphs.
        let rules =
            grammar.lines().filter(|rule| rule.contains(&format!("{morph} --> ")) && !rule.starts_with('#'));
        assert!((2..=4).contains(&rules.count()), "{morph}: {grammar}");
    }
    grammaton(&["train", &at(&dir, "out/job.toml"), "--out", &at(&dir, "again"), "-q"]).success();
    assert_eq!(read("out/segmentation.mbr-vote.txt"), read("again/segmentation.mbr-vote.txt"));
    refused(
        &["morphemes", &at(&dir, "words.txt"), "--cascade", "--grammar", "colloc"],
        &["--cascade", "no affixes"],
    );
    refused(&["morphemes", &at(&dir, "words.txt"), "--cascade", "--out", &out], &["has a finished result"]);
    for (wrong, printed) in [
        ("model.prefixes=words.txt", "left out: model.cascade finds them"),
        ("model.voters=[\"auto:morph15\"]", "0 with model.voters or a [[sweep]]"),
        ("inference.seed=1,2", "0 with model.voters or a [[sweep]]"),
        ("model.grammar=auto:colloc", "a grammar of morphemes for model.cascade"),
    ] {
        refused(&["train", &at(&dir, "out/job.toml"), "--out", &at(&dir, "not"), "--set", wrong], &[printed]);
    }
}

/// Law: the printed boundaries are those whose probability is at least the threshold, so that a lower one has all those of a higher one.
#[test]
fn a_threshold_cuts_where_a_boundary_is_as_probable() {
    let words: Vec<String> = ["go", "do", "lock", "pack", "load", "tie"]
        .iter()
        .flat_map(|stem| ["", "ing", "s", "ed"].map(|suffix| format!("{stem}{suffix}")))
        .collect();
    let dir = folder(&[("words.txt", words.join("\n").as_bytes())]);
    let ends = |word: &str| -> Vec<usize> {
        let lengths = word.split(' ').map(str::len);
        lengths.scan(0, |end, length| Some(std::mem::replace(end, *end + length))).skip(1).collect()
    };
    let found = |threshold: &str| -> Vec<Vec<usize>> {
        let out = at(&dir, &format!("out{threshold}"));
        morphemes(&[&at(&dir, "words.txt"), "--threshold", threshold, "--out", &out]);
        let segmented = fs::read_to_string(format!("{out}/segmented.txt")).unwrap();
        let table = fs::read_to_string(format!("{out}/boundaries.tsv")).unwrap();
        let lines: Vec<Vec<usize>> = segmented.lines().map(ends).collect();
        for row in table.lines().skip(1) {
            let [line, position, probability, boundary] = row.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{row}")
            };
            let is_end = lines[line.parse::<usize>().unwrap() - 1].contains(&position.parse().unwrap());
            assert_eq!(is_end, boundary == "yes", "{row}");
            if threshold != "0" {
                let is_probable = probability.parse::<f64>().unwrap() >= threshold.parse().unwrap();
                assert_eq!(is_end, is_probable, "{row}");
            }
        }
        lines
    };
    let [fine, coarse, vote] = ["0.1", "0.9", "0"].map(found);
    let pairs = || fine.iter().zip(&coarse);
    assert!(pairs().all(|(fine, coarse)| coarse.iter().all(|end| fine.contains(end))));
    assert!(pairs().any(|(fine, coarse)| fine != coarse) && vote.len() == fine.len());
    refused(&["morphemes", &at(&dir, "words.txt"), "--threshold", "1.5"], &["--threshold", "from 0 to 1"]);
}

/// Law: what contexts say depends on the symbols of a word alone, so the words of the job are read again as they were, with the same probabilities, and new words as well.
#[test]
fn words_are_read_again_by_their_contexts() {
    let words: Vec<String> = ["go", "do", "lock", "pack", "load", "tie", "o"]
        .iter()
        .flat_map(|stem| ["", "ing", "s", "ed"].map(|suffix| format!("{stem}{suffix}\n")))
        .collect();
    let known = "going\tgo ing\nlocked\tlock ed\n";
    let new = "unlocked\npacks\nz\nqqing\n";
    let files = [("words.txt", words.concat()), ("known.tsv", known.to_owned()), ("new.txt", new.to_owned())];
    let dir = folder(&files.each_ref().map(|(name, text)| (*name, text.as_bytes())));
    let [file, known, new, table] =
        ["words.txt", "known.tsv", "new.txt", "table.tsv"].map(|name| at(&dir, name));
    let [found, taught, alone] = ["found", "taught", "alone"].map(|name| at(&dir, name));
    morphemes(&[&file, "--out", &found]);
    let read = |name: &str| fs::read_to_string(format!("{found}/{name}")).unwrap();
    let printed = read("segmented.txt");
    assert_eq!(printed, read("segmentation.contexts.txt"));
    let parse = |args: &[&str]| stdout(&grammaton(&[&["parse"], args].concat()).success());
    assert_eq!(parse(&[&found, &file, "--boundaries", &table]), printed);
    assert_eq!(fs::read_to_string(&table).unwrap(), read("boundaries.tsv"));
    let bare: String = parse(&[&found, &new]).chars().filter(|symbol| *symbol != ' ').collect();
    assert_eq!(bare, "unlocked\npacks\nz\nqqing\n");
    // A word with a new symbol is read by what stands around it, and says so.
    let rows = grammaton(&["parse", &found, &new, "--format", "tsv"]).success();
    let notice = String::from_utf8(rows.get_output().stderr.clone()).unwrap();
    assert!(notice.contains("segmented by what votes beside the models: 3 of 4 sentences"), "{notice}");
    let rows = stdout(&rows);
    assert!(rows.ends_with("4\t\tqq ing\t\tno model\n"), "{rows}");
    let best = parse(&[&found, &new, "--n-best", "2"]);
    assert!(best.contains("qq ing") && best.lines().count() == 8, "{best}");
    grammaton(&["parse", &found, &new, "--strict"]).code(1);
    // Above annotated lines as well; these are read without what is known of them.
    morphemes(&[&file, "--annotated", &known, "--out", &taught]);
    let printed = fs::read_to_string(format!("{taught}/segmented.txt")).unwrap();
    let again = parse(&[&taught, &file]);
    let is_annotated = |line: &&str| !["going", "locked"].contains(&&*line.replace(' ', ""));
    let without =
        |text: &str| -> Vec<String> { text.lines().filter(is_annotated).map(str::to_owned).collect() };
    assert_eq!(without(&printed), without(&again));
    let job =
        ["train", &format!("{found}/job.toml"), "-q", "--out", &alone, "--set", "output.contexts=false"];
    grammaton(&job).success();
    refused(&["parse", &alone, &new, "--decoder", "contexts"], &["has not learned from contexts"]);
}

#[test]
fn wrong_affixes_are_refused_in_a_line() {
    let dir = folder(&[("words.txt", b"undo\nredo\n"), ("other.txt", b"zz\n"), ("latin1.txt", b"u\n\xe9\n")]);
    let words = at(&dir, "words.txt");
    refused(
        &["morphemes", &words, "--prefixes", &at(&dir, "other.txt")],
        &["no affix of symbols of the corpus"],
    );
    refused(&["morphemes", &words, "--suffixes", &at(&dir, "none.txt")], &["none.txt: cannot read the list"]);
    refused(
        &["morphemes", &words, "--suffixes", &at(&dir, "latin1.txt")],
        &["latin1.txt:2: byte 2 is not UTF-8"],
    );
    refused(&["morphemes", &words, "--grammar", "morph155"], &["did you mean"]);
}
