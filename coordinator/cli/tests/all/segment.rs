//! `grammaton segment`: the lines of any text, the job that it writes, and refusals.

use std::fs;

use super::cli::{at, folder, grammaton, refused, stdout};

/// Utterances of several scripts, with gold boundaries in some, empty lines, marks, a long word and line ends of all kinds.
const TEXT: &str = "بيت كبير\nقطة\u{64e}\n\n  ადამიანი დადის\r\nкошка\n人间喜剧\u{3000}人间\n\ncafe\u{301} au lait\ne\u{301}\n\u{301}e\nx\n\
    aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbb\n&*~3 R\n";

fn without_spaces(line: &str) -> String {
    line.split_whitespace().collect()
}

fn segment(args: &[&str]) -> String {
    stdout(&grammaton(&[&["segment", "--quiet", "--sweeps", "4", "--chains", "2"], args].concat()).success())
}

/// The text of a file of results.
fn read(dir: &tempfile::TempDir, name: &str) -> String {
    fs::read_to_string(dir.path().join(name)).unwrap()
}

fn sha256(dir: &tempfile::TempDir, out: &str) -> String {
    let summary: serde_json::Value =
        serde_json::from_str(&read(dir, &format!("{out}/summary.json"))).unwrap();
    summary["parameters_sha256"].as_str().unwrap().to_owned()
}

#[test]
fn every_line_is_the_line_of_the_text_with_other_spaces() {
    let dir = folder(&[("text.txt", TEXT.as_bytes())]);
    for grammar in ["auto", "unigram", "colloc3-syllable-functionwords-both", "unigram,colloc"] {
        let found = segment(&[&at(&dir, "text.txt"), "--grammar", grammar]);
        assert_eq!(found.lines().count(), TEXT.lines().count(), "{grammar}");
        for (found, line) in found.lines().zip(TEXT.lines()) {
            assert_eq!(without_spaces(found), without_spaces(line), "{grammar}");
            assert_eq!(
                found.split_whitespace().collect::<Vec<_>>().join(" "),
                found,
                "{grammar}: single spaces"
            );
            let marked =
                |word: &str| word.starts_with(['\u{301}', '\u{64e}']) && !line.starts_with('\u{301}');
            assert!(!found.split(' ').any(marked), "{grammar}: a mark stays with its letter: {found}");
        }
    }
}

/// A model of a text of any script, words of one letter and of a hundred among it, reads the text again, and the report shows it as it is.
#[test]
fn any_script_goes_through_parse_and_the_report() {
    let dir = folder(&[("text.txt", TEXT.as_bytes())]);
    let out = at(&dir, "out");
    segment(&[&at(&dir, "text.txt"), "--grammar", "colloc-syllable", "--out", &out]);
    for decoder in ["viterbi", "mbr"] {
        let args = ["parse", &out, &at(&dir, "text.txt"), "--decoder", decoder];
        let parsed = stdout(&grammaton(&args).success());
        assert_eq!(parsed.lines().count(), TEXT.lines().count());
        for (parsed, line) in parsed.lines().zip(TEXT.lines()) {
            assert_eq!(without_spaces(parsed), without_spaces(line), "{decoder}");
        }
    }
    let report = read(&dir, "out/report.html");
    for symbol in ["ა", "к", "ك", "人", "e\u{301}"] {
        assert!(report.contains(symbol), "{symbol}");
    }
}

/// Utterances drawn from a language of `examples/languages`.
fn drawn(language: &str, n: usize) -> String {
    let grammar = format!("{}/../../examples/languages/{language}.gr", env!("CARGO_MANIFEST_DIR"));
    let args = ["sample", &grammar, "-n", &n.to_string(), "--segments", "Word,Particle"];
    stdout(&grammaton(&args).success())
}

#[test]
fn grammars_are_chosen_by_trials_which_are_shown_and_the_job_says_why() {
    let dir = folder(&[("text.txt", drawn("poor-syllables", 150).as_bytes())]);
    let args = ["segment", &at(&dir, "text.txt"), "--out", &at(&dir, "out"), "--sweeps", "4"];
    let printed = grammaton(&args).success();
    let printed = String::from_utf8(printed.get_output().stderr.clone()).unwrap();
    let job = read(&dir, "out/job.toml");
    let reason = job.lines().find(|line| line.contains("words of a short trial have one syllable")).unwrap();
    assert!(printed.contains(&format!("notice: {}\n", &reason[2..])), "{printed}");
    assert!(reason.contains("a trial with one level of collocations agrees by 0."), "{reason}");
    assert!(!reason.contains("a trial with function words"), "for short words only: {reason}");
    let of_trials = printed.split(&reason[2..]).next().unwrap();
    assert_eq!(of_trials.matches("notice: trial of ").count(), 2, "{printed}");
    assert_eq!(printed.matches("\nround 4, ").count(), 3, "rounds are those of the run: {printed}");
    let summary: serde_json::Value = serde_json::from_str(&read(&dir, "out/summary.json")).unwrap();
    let n_chains = |point: &serde_json::Value| point["bounds"].as_array().unwrap().len();
    assert_eq!(summary["points"].as_array().unwrap().iter().map(n_chains).sum::<usize>(), 3, "{job}");
}

#[test]
fn short_texts_have_more_sweeps_and_a_number_of_chains_is_that_of_every_grammar() {
    let dir = folder(&[("text.txt", drawn("poor-syllables", 20).as_bytes())]);
    let args = ["segment", &at(&dir, "text.txt"), "--out", &at(&dir, "out"), "-q", "--chains", "2"];
    grammaton(&args).success();
    let job = read(&dir, "out/job.toml");
    assert!(job.contains("restarts = 2\n") && job.contains("max_rounds = 200\n"), "{job}");
    assert!(!job.contains("voter_chains"), "{job}");
}

/// Law: the choice does not depend on how the symbols are written.
#[test]
fn grammars_are_chosen_alike_for_characters_and_tokens() {
    let text = drawn("poor-syllables", 60);
    let tokens: String = text.lines().map(|line| spaced(&line.replace(' ', "")) + "\n").collect();
    let reasons = [(text, "unit = \"char\""), (tokens, "format = \"tokens\"")].map(|(text, form)| {
        let job = format!(
            "[model]\ngrammar = \"auto\"\n[corpus]\npath = \"text.txt\"\n{form}\n[inference]\nmethod = \"hastings\"\nmax_rounds = 2\n"
        );
        let dir = folder(&[("text.txt", text.as_bytes()), ("job.toml", job.as_bytes())]);
        let printed = grammaton(&["train", &at(&dir, "job.toml")]).success().get_output().stderr.clone();
        let printed = String::from_utf8(printed).unwrap();
        printed.lines().find(|line| line.contains("of a short trial")).unwrap_or(&printed).to_owned()
    });
    assert_eq!(reasons[0], reasons[1]);
}

fn spaced(line: &str) -> String {
    line.chars().map(String::from).collect::<Vec<_>>().join(" ")
}

/// A run goes on as its job file says, and ends with the segmentation.
#[test]
fn a_resumed_run_has_its_segmentation() {
    let dir = folder(&[("text.txt", b"abab\nba\nab\n"), ("other.txt", b"abab\nba\nba\n")]);
    let (text, out) = (at(&dir, "text.txt"), at(&dir, "out"));
    let run = |text: &str, args: &[&str]| {
        grammaton(
            &[&["segment", text, "--grammar", "unigram", "--sweeps", "6", "--out", &out], args].concat(),
        )
    };
    run(&text, &["--quiet"]).success();
    let (segmented, digest) = (read(&dir, "out/segmented.txt"), sha256(&dir, "out"));
    for name in ["segmented.txt", "summary.json"] {
        fs::remove_file(dir.path().join("out").join(name)).unwrap();
    }
    let printed = stdout(&run(&text, &["--resume", "--json"]).success());
    assert!(printed.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{printed}");
    assert_eq!((read(&dir, "out/segmented.txt"), sha256(&dir, "out")), (segmented, digest));
    let refused = run(&at(&dir, "other.txt"), &["--resume", "--quiet"]).code(2).get_output().stderr.clone();
    assert!(String::from_utf8(refused).unwrap().contains("the folder has a run of another text"));
}

/// Messages name options of the command, not keys of a job file.
#[test]
fn progress_names_options() {
    let dir = folder(&[("text.txt", b"abab\nba\nab\n")]);
    let args =
        ["segment", &at(&dir, "text.txt"), "--grammar", "unigram,colloc", "--sweeps", "8", "--chains", "2"];
    let printed = String::from_utf8(grammaton(&args).success().get_output().stderr.clone()).unwrap();
    assert!(printed.contains("stopped after 8 rounds, as --sweeps says"), "{printed}");
    assert!(!printed.contains("inference."), "{printed}");
    assert!(printed.contains("the model written is of auto:unigram"), "{printed}");
}

/// Law: a command overwrites only what an earlier run of it wrote, unless it may replace other files, and never the text.
#[test]
fn files_of_the_user_are_not_overwritten() {
    let run = |dir: &tempfile::TempDir, args: &[&str]| {
        let (text, out) = (at(dir, "corpus.txt"), at(dir, ""));
        grammaton(
            &[&["segment", &text, "--sweeps", "2", "-q", "--grammar", "unigram", "--out", &out], args]
                .concat(),
        )
    };
    let text = "a b\nba ab\n";
    for (name, args) in
        [("corpus.txt", &[][..]), ("corpus.txt", &["--overwrite"]), ("job.toml", &["--overwrite"])]
    {
        let dir = folder(&[("corpus.txt", text.as_bytes()), (name, text.as_bytes())]);
        let printed = String::from_utf8(run(&dir, args).code(2).get_output().stderr.clone()).unwrap();
        assert!(
            printed.contains("corpus.txt: the text would be overwritten; choose another folder"),
            "{printed}"
        );
        assert_eq!(read(&dir, name), text);
    }
    let dir = folder(&[("text.txt", text.as_bytes())]);
    let out = at(&dir, "out");
    let again =
        ["segment", &at(&dir, "text.txt"), "--sweeps", "2", "-q", "--grammar", "unigram", "--out", &out];
    grammaton(&again).success();
    grammaton(&[&again[..], &["--overwrite"]].concat()).success();
}

#[test]
fn phonemes_are_tokens_between_spaces() {
    let text = "t uu | m ii\n\nt uu t uu\nm ii\n";
    let dir = folder(&[("text.txt", text.as_bytes())]);
    let found = segment(&[&at(&dir, "text.txt"), "--unit", "token"]);
    for (found, line) in found.lines().zip(text.lines()) {
        assert_eq!(found.replace("| ", ""), line.replace("| ", ""));
    }
}

#[test]
fn written_job_gives_the_same_result_on_any_number_of_threads() {
    let dir = folder(&[("text.txt", TEXT.as_bytes())]);
    let (text, out) = (at(&dir, "text.txt"), at(&dir, "out"));
    let printed = segment(&[&text, "--out", &out, "--workers", "1"]);
    assert_eq!(printed.trim_end(), at(&dir, "out/segmented.txt"));
    grammaton(&["train", &at(&dir, "out/job.toml"), "--out", &at(&dir, "again"), "--workers", "3", "-q"])
        .success();
    assert_eq!(sha256(&dir, "out"), sha256(&dir, "again"));
    assert_eq!(read(&dir, "out/segmentation.mbr-vote.txt"), read(&dir, "again/segmentation.mbr-vote.txt"));
    assert_eq!(read(&dir, "out/segmented.txt"), segment(&[&text, "--workers", "2"]));
    assert!(dir.path().join("out/report.html").exists());
    refused(&["segment", &text, "--out", &out], &["has a finished result", "--overwrite"]);
    segment(&[&text, "--out", &out, "--overwrite", "--seed", "2"]);
    assert_ne!(sha256(&dir, "out"), sha256(&dir, "again"));
}

#[test]
fn grammars_vote_together_and_the_job_names_them() {
    let dir = folder(&[("text.txt", TEXT.as_bytes())]);
    let of = |grammars: &str, out: &str| {
        let (text, out_dir) = (at(&dir, "text.txt"), at(&dir, out));
        let options = ["--grammar", grammars, "--out", &out_dir, "--chains", "1", "--sweeps", "4", "-q"];
        grammaton(&[&["segment", &text][..], &options].concat()).success();
        let vote = read(&dir, &format!("{out}/segmentation.mbr-vote.txt"));
        (sha256(&dir, out), vote, read(&dir, &format!("{out}/segmentation.mbr.txt")))
    };
    let (alone, vote_alone, mbr_alone) = of("colloc-syllable", "alone");
    assert_eq!(vote_alone, mbr_alone, "a voter alone decides");
    let (first, vote, mbr) = of("colloc-syllable,auto:unigram,colloc3", "three");
    assert_eq!(
        (&first, &mbr),
        (&alone, &mbr_alone),
        "the model and its segmentation are of the first grammar"
    );
    let (_, of_unigram, _) = of("unigram", "unigram");
    assert!(vote != vote_alone || of_unigram == vote_alone, "the others have a say");
    let job = read(&dir, "three/job.toml");
    assert!(job.contains("voters = [\"auto:unigram\", \"auto:colloc3\"]"), "{job}");
    assert!(!read(&dir, "alone/job.toml").contains("voters"));
    let summary: serde_json::Value = serde_json::from_str(&read(&dir, "three/summary.json")).unwrap();
    let names: Vec<&str> =
        summary["points"].as_array().unwrap().iter().filter_map(|point| point["name"].as_str()).collect();
    assert_eq!(names, ["grammar=auto:colloc-syllable", "grammar=auto:unigram", "grammar=auto:colloc3"]);
    let report = read(&dir, "three/report.html");
    assert!(report.contains("grammar=auto:colloc3") && report.contains("vote with its models"));
}

#[test]
fn seconds_become_a_number_of_rounds_in_the_job() {
    let dir = folder(&[("text.txt", TEXT.as_bytes())]);
    let args = ["segment", &at(&dir, "text.txt"), "--out", &at(&dir, "out"), "--seconds", "0.02", "-q"];
    grammaton(&args).success();
    assert!(read(&dir, "out/job.toml").contains("\nmax_rounds = "));
    grammaton(&["train", &at(&dir, "out/job.toml"), "--out", &at(&dir, "again"), "-q"]).success();
    assert_eq!(sha256(&dir, "out"), sha256(&dir, "again"));
}

/// A chart that grew with the square of a line would take 4 GiB here.
#[test]
fn a_line_of_thousands_of_symbols_is_segmented() {
    let line = drawn("isolating", 700).replace([' ', '\n'], "");
    let line: String = line.chars().take(3_000).collect();
    assert_eq!(line.len(), 3_000);
    let dir = folder(&[("text.txt", format!("{TEXT}{line}\n").as_bytes())]);
    let segmented = segment(&[&at(&dir, "text.txt"), "--grammar", "unigram"]);
    assert_eq!(without_spaces(segmented.lines().last().unwrap()), line);
}

#[test]
fn text_with_spaces_is_scored() {
    let dir = folder(&[("gold.txt", b"tu mi tu\nmi\n"), ("bare.txt", b"tumitu\nmi\n")]);
    let printed = |name: &str| {
        let found = grammaton(&["segment", &at(&dir, name), "--sweeps", "4"]).success();
        String::from_utf8(found.get_output().stderr.clone()).unwrap()
    };
    assert!(printed("gold.txt").contains("mbr-vote F1"));
    assert!(!printed("bare.txt").contains("mbr-vote F1"));
}

#[test]
fn texts_that_cannot_be_segmented_are_refused_in_a_line() {
    let dir = folder(&[
        ("empty.txt", b""),
        ("blank.txt", b"\n\n"),
        ("one.txt", b"aaa\na\n"),
        ("latin1.txt", b"ab\n\nb\xe9\n"),
        ("text.txt", b"ab\nba\n"),
    ]);
    for (name, part) in [
        ("empty.txt", "no sentences"),
        ("blank.txt", "2 empty lines"),
        ("one.txt", "a single symbol"),
        ("latin1.txt", "latin1.txt:3: byte 5 is not UTF-8"),
        ("none.txt", "cannot open the corpus"),
    ] {
        refused(&["segment", &at(&dir, name)], &[part]);
    }
    let text = at(&dir, "text.txt");
    refused(&["segment", &text, "--grammar", "coloc3"], &["did you mean \"colloc3\""]);
    refused(&["segment", &text, "--grammar", "unigram,"], &["not a grammar"]);
    refused(&["segment", &text, "--grammar", "unigram,colloc,auto:colloc"], &["colloc is there twice"]);
    refused(&["segment", &text, "--grammar", "colloc-syllable", "--vowels", "x"], &["none of these symbols"]);
    refused(&["segment", &text, "--seconds", "5", "--sweeps", "5"], &["cannot be used with"]);
    refused(&["segment", &text, "--overwrite"], &["--out"]);
}

/// A model whose segments are single symbols has a notice, on the console and in the summary; one whose segments are words has none.
#[test]
fn segments_of_single_symbols_are_told() {
    let grammar = "1 1 S --> Word\n1 1 S --> Word S\nWord --> Letters\n1 1 Letters --> Letter\n1 1 Letters --> Letter Letters\n\
        1 1 Letter --> a\n1 1 Letter --> b\n";
    let corpus = "aab bab aab\nbab aab\n".repeat(40);
    for (segment, is_told) in [("Letter", true), ("Word", false)] {
        let job = format!(
            "[model]\ngrammar = \"g.gr\"\n[corpus]\npath = \"corpus.txt\"\n[inference]\nmax_rounds = 3\n[output]\nsegments = [\"{segment}\"]\n"
        );
        let dir = folder(&[
            ("g.gr", grammar.as_bytes()),
            ("corpus.txt", corpus.as_bytes()),
            ("job.toml", job.as_bytes()),
        ]);
        let printed = grammaton(&["train", &at(&dir, "job.toml")]).success();
        let console = String::from_utf8_lossy(&printed.get_output().stderr).into_owned();
        let summary = read(&dir, "out/summary.json");
        for text in [&console, &summary] {
            assert_eq!(text.contains("single symbols"), is_told, "{text}");
        }
    }
}

/// Law: gold in a file of its own scores as that of the text, in any order of lines; of several analyses the best counts; what the file lacks is not scored.
#[test]
fn gold_may_be_a_file_of_its_own() {
    let words = ["un do", "re do", "re read", "un read", "do er", "re do er", "read er", "un do er"];
    let gold: Vec<String> = words.iter().map(|line| format!("{line}\n")).collect();
    let reversed: Vec<String> = gold.iter().rev().cloned().collect();
    let bare = gold.concat().replace(' ', "");
    let analyses = "undo\tundo, un do\nreader\tread/STM er/SUF\nother\toth er\n";
    let dir = folder(&[
        ("gold.txt", gold.concat().as_bytes()),
        ("reversed.txt", reversed.concat().as_bytes()),
        ("bare.txt", bare.as_bytes()),
        ("analyses.txt", analyses.as_bytes()),
        ("strange.txt", b"xyz\n"),
        ("nfd.txt", "caf\u{e9}\nundo\n".as_bytes()),
        ("nfd-gold.txt", "cafe\u{301}\n".as_bytes()),
    ]);
    let scores = |text: &str, gold: &[&str]| {
        let out = at(&dir, "out");
        let args = [
            "segment",
            &at(&dir, text),
            "--grammar",
            "unigram",
            "--sweeps",
            "4",
            "--out",
            &out,
            "--overwrite",
        ];
        let printed = grammaton(&[&args[..], gold].concat()).success();
        let printed = String::from_utf8(printed.get_output().stderr.clone()).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&read(&dir, "out/summary.json")).unwrap();
        (summary["scores"]["mbr-vote"].clone(), printed)
    };
    let (of_text, _) = scores("gold.txt", &[]);
    let (of_file, printed) = scores("bare.txt", &["--gold", &at(&dir, "reversed.txt")]);
    assert_eq!(of_file, of_text);
    assert!(printed.contains("reversed.txt: 8 of 8 lines are sentences of the corpus"), "{printed}");
    let (of_analyses, printed) = scores("bare.txt", &["--gold", &at(&dir, "analyses.txt")]);
    assert_eq!(of_analyses["sentences"], 2);
    assert!(
        printed.contains(
            "analyses.txt: 2 of 3 lines are sentences of the corpus, which are scored; no sentence is"
        ),
        "{printed}"
    );
    // The same lines by `eval`.
    let segmented = read(&dir, "out/segmented.txt");
    let lines: Vec<&str> = segmented.lines().collect();
    fs::write(dir.path().join("predicted.txt"), format!("{}\n{}\n", lines[0], lines[6])).unwrap();
    fs::write(dir.path().join("two.txt"), analyses.lines().take(2).collect::<Vec<_>>().join("\n")).unwrap();
    let args = ["eval", "segmentation", &at(&dir, "two.txt"), &at(&dir, "predicted.txt"), "--json"];
    let of_eval: serde_json::Value = serde_json::from_str(&stdout(&grammaton(&args).success())).unwrap();
    for (name, score) in of_analyses.as_object().unwrap() {
        assert_eq!(score, &of_eval[name], "{name}");
    }
    // Trials are on a part of the text, which may have no sentence of the gold.
    for more in [&["--grammar", "auto"][..], &["--seconds", "2"]] {
        let args = ["segment", &at(&dir, "bare.txt"), "-q", "--gold", &at(&dir, "two.txt")];
        grammaton(&[&args[..], more].concat()).success();
    }
    for (text, gold, parts) in [
        ("bare.txt", "strange.txt", ["none of 1 lines is a sentence", "`xyz`"]),
        ("nfd.txt", "nfd-gold.txt", ["another Unicode form", "corpus.normalise"]),
    ] {
        let gold = at(&dir, gold);
        refused(&["segment", &at(&dir, text), "--grammar", "unigram", "-q", "--gold", &gold], &parts);
    }
}

#[test]
fn known_words_and_stems_are_rules_beside_what_is_learned() {
    // Utterances of four words, each of which is a part of another or begins like it.
    let words = ["ab", "abca", "cab", "bcb"];
    let utterance =
        |n: usize| (0..3).map(|at| words[(n * 5 + at * n + at * at) % 4]).collect::<Vec<_>>().join(" ");
    let text: String = (1..60).map(|n| utterance(n) + "\n").collect();
    let dir = folder(&[
        ("text.txt", text.as_bytes()),
        ("words.txt", b"ab\t31\nabca\t3\n\ncab\nbcb\nxyz\n"),
        ("other.txt", b"xyz\n"),
        ("stems.txt", b"abca-\n"),
    ]);
    let [text, known, other, stems] =
        ["text.txt", "words.txt", "other.txt", "stems.txt"].map(|name| at(&dir, name));
    let f1 = |more: &[&str], out: &str| {
        let out = at(&dir, out);
        let run = ["segment", &text, "--grammar", "unigram", "--chains", "1", "--sweeps", "4", "--out", &out];
        let done = grammaton(&[&run[..], more].concat()).success();
        let summary: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(format!("{out}/summary.json")).unwrap()).unwrap();
        let errors = String::from_utf8(done.get_output().stderr.clone()).unwrap();
        (summary["scores"]["mbr-vote"]["token_f1"].as_f64().unwrap(), errors)
    };
    let ((with, errors), (without, _)) = (f1(&["--words", &known], "with"), f1(&[], "without"));
    assert!(with > 0.9 && with > without, "{with} {without}");
    for notice in [
        "the counts of 2 words are not read",
        "left out 1 of 5 words, which have symbols that the corpus lacks",
    ] {
        assert!(errors.contains(&format!("{known}: {notice}")), "{errors}");
    }
    let grammar = fs::read_to_string(at(&dir, "with/model/grammar.txt")).unwrap();
    assert!(grammar.lines().any(|rule| rule.ends_with("Word --> a b c a")), "{grammar}");
    // The job has them in a file of its own, and gives the same result.
    fs::remove_file(&known).unwrap();
    grammaton(&["train", &at(&dir, "with/job.toml"), "--out", &at(&dir, "again"), "-q"]).success();
    let read = |name: &str| fs::read_to_string(at(&dir, name)).unwrap();
    assert_eq!(read("with/segmentation.mbr-vote.txt"), read("again/segmentation.mbr-vote.txt"));
    refused(
        &["segment", &text, "-q", "--grammar", "unigram", "--words", &other],
        &[&other, "no word of symbols of the corpus"],
    );
    let morphemes = ["morphemes", &text, "--chains", "1", "--sweeps", "2", "--stems", &stems, "--out"];
    let done = grammaton(&[&morphemes[..], &[&at(&dir, "morphemes")]].concat()).success();
    let errors = String::from_utf8(done.get_output().stderr.clone()).unwrap();
    assert!(errors.contains("the hyphens at the edge of 1 stems were left out"), "{errors}");
    assert!(read("morphemes/model/grammar.txt").lines().any(|rule| rule.ends_with("Stem --> a b c a")));
}
