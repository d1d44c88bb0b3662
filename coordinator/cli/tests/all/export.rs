//! `grammaton export`, and `grammaton parse` in formats of other programs.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use super::cli::{at, folder, grammaton, refused, stdout};

const JOB: &str = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"text.txt\"\n[inference]\nmax_rounds = 3\n[output]\ndir = \"out\"\n";

/// A text with an empty line, and its results.
fn trained() -> TempDir {
    let dir = folder(&[("text.txt", b"yu want tu\n\nbuk\nyu si D6 buk\n"), ("job.toml", JOB.as_bytes())]);
    grammaton(&["train", &at(&dir, "job.toml"), "-q"]).success();
    dir
}

fn exported(dir: &TempDir, args: &[&str]) -> String {
    stdout(&grammaton(&[&["export", &at(dir, "out")], args].concat()).success())
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The segments of each line, as `segmentation.mbr.txt` has them.
fn printed(dir: &TempDir, decoder: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(dir.path().join(format!("out/segmentation.{decoder}.txt"))).unwrap();
    text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn every_line_has_an_object() {
    let dir = trained();
    for decoder in ["mbr", "viterbi"] {
        let lines = objects(&exported(&dir, &["--format", "json", "--decoder", decoder]));
        let segments: Vec<Vec<String>> =
            lines.iter().map(|line| serde_json::from_value(line["segments"].clone()).unwrap()).collect();
        assert_eq!(segments, printed(&dir, decoder));
        let numbers: Vec<u64> = lines.iter().map(|line| line["line"].as_u64().unwrap()).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert_eq!((&lines[1]["status"], &lines[0]["status"]), (&"empty".into(), &"ok".into()));
        assert_eq!(lines[0]["gold"], serde_json::json!(["yu", "want", "tu"]));
        assert!(lines[0]["log_probability"].as_f64().unwrap() < 0.0);
    }
    let with_categories = objects(&exported(&dir, &["--format", "json", "--decoder", "viterbi"]));
    let categories = with_categories[0]["categories"].as_array().unwrap();
    assert_eq!(categories.len(), with_categories[0]["segments"].as_array().unwrap().len());
    assert!(categories.iter().all(|category| category == "Word"));
    // `parse` gives the same objects.
    let parsed = ["parse", &at(&dir, "out"), &at(&dir, "text.txt"), "--format", "json"];
    let parsed = objects(&stdout(&grammaton(&parsed).success()));
    for (line, of_results) in parsed.iter().zip(&with_categories) {
        for field in ["line", "status", "gold"] {
            assert_eq!(line[field], of_results[field]);
        }
    }
}

#[test]
fn every_format_is_written_with_and_without_results() {
    let dir = trained();
    for (format, parts) in [
        ("json", ["{\"line\":1", "\"segments\":"]),
        ("conllu", ["# sent_id = line-1", "\n1\t"]),
        ("latex", ["\\begin{exe}", "\\gll "]),
        ("chat", ["@Begin\n", "\n%xseg:\t"]),
        ("textgrid", ["ooTextFile", "name = \"words\""]),
        ("eaf", ["<ANNOTATION_DOCUMENT ", "TIER_ID=\"text words\""]),
        ("flextext", ["<interlinear-text>", "<word><item "]),
    ] {
        let text = exported(&dir, &["--format", format]);
        let parsed = ["parse", &at(&dir, "out"), &at(&dir, "text.txt"), "--format", format];
        let parsed = stdout(&grammaton(&parsed).success());
        for part in parts {
            assert!(text.contains(part) && parsed.contains(part), "{format}: {text}{parsed}");
        }
    }
    let table = fs::read_to_string(dir.path().join("out/segmentation.mbr.tsv")).unwrap();
    assert_eq!(exported(&dir, &["--format", "tsv"]), table);
    let scores = exported(&dir, &["--format", "latex-scores"]);
    assert!(
        scores.contains("\\toprule") && scores.contains("\nmbr & ") && scores.contains("\nviterbi & "),
        "{scores}"
    );
    let of_eval =
        ["eval", "segmentation", &at(&dir, "text.txt"), &at(&dir, "out/segmentation.mbr.txt"), "--latex"];
    let of_eval = stdout(&grammaton(&of_eval).success());
    let numbers = |text: &str| {
        text.lines().find(|line| line.contains("mbr")).unwrap().split_once(" & ").unwrap().1.to_owned()
    };
    assert_eq!(numbers(&of_eval), numbers(&scores));
}

const TRANSCRIPT: &str = "@UTF8\r\n@Begin\r\n@Participants:\tCHI Target_Child, MOT Mother\r\n*MOT:\tyu want tu .\r\n%com:\tsmiles\r\n*CHI:\txxx .\r\n*CHI:\tbuk !\r\n*MOT:\tyu si D6 buk ?\r\n@End\r\n";

#[test]
fn a_transcript_comes_back_with_a_tier() {
    let dir = folder(&[("text.cha", TRANSCRIPT.as_bytes())]);
    let (text, out) = (at(&dir, "text.cha"), at(&dir, "out"));
    grammaton(&[
        "segment",
        &text,
        "--grammar",
        "unigram",
        "--chains",
        "1",
        "--sweeps",
        "4",
        "--quiet",
        "--out",
        &out,
    ])
    .success();
    let file = at(&dir, "segmented.cha");
    grammaton(&["export", &out, "--original", &text, "--out", &file]).success();
    let written = fs::read_to_string(&file).unwrap();
    let segmented: Vec<String> = fs::read_to_string(dir.path().join("out/segmented.txt"))
        .unwrap()
        .lines()
        .filter_map(|line| Some(line.split_once('\t')?.1.to_owned()))
        .filter(|line| !line.trim().is_empty())
        .collect();
    let tiers: Vec<&str> = written.lines().filter_map(|line| line.strip_prefix("%xseg:\t")).collect();
    assert_eq!(tiers, segmented);
    let rest: String = written.split_inclusive('\n').filter(|line| !line.starts_with("%xseg")).collect();
    assert_eq!(rest, TRANSCRIPT);
    // Speakers are in other formats too, and probabilities.
    let lines = objects(&exported(&dir, &["--original", &text, "--format", "json"]));
    let speakers: Vec<&str> = lines.iter().map(|line| line["speaker"].as_str().unwrap()).collect();
    assert_eq!(speakers, ["MOT", "CHI", "MOT"]);
    assert_eq!(lines[0]["boundaries"].as_array().unwrap().len(), 7);
    // What is there is not replaced without being asked.
    let again = ["export", &out, "--original", &text, "--out", &file];
    refused(&again, &["segmented.cha", "exists", "--overwrite"]);
    grammaton(&[&again[..], &["--overwrite"]].concat()).success();
    refused(&["export", &out, "--original", &text, "--out", &text, "--overwrite"], &["original file"]);
    assert_eq!(fs::read_to_string(&text).unwrap(), TRANSCRIPT);
}

#[test]
fn words_of_an_original_have_their_morphemes() {
    let stems = ["lok", "patier", "munzabo", "tarela"];
    let words: String = stems
        .iter()
        .flat_map(|stem| ["", "ing", "s", "ed"].map(|suffix| format!("{stem}{suffix}\n")))
        .collect();
    let grid = "\"ooTextFile\"\n\"TextGrid\"\n0\n2\n<exists>\n1\n\"IntervalTier\"\n\"text\"\n0\n2\n2\n0\n1.5\n\"Loking new lok,\"\n1.5\n2\n\"\"\n";
    let dir = folder(&[("words.txt", words.as_bytes()), ("a.TextGrid", grid.as_bytes())]);
    let (text, out, grid) = (at(&dir, "words.txt"), at(&dir, "out"), at(&dir, "a.TextGrid"));
    grammaton(&["morphemes", &text, "--chains", "1", "--sweeps", "4", "--quiet", "--out", &out]).success();
    let lines = objects(&exported(&dir, &["--format", "json"]));
    let morphemes = |word: &str| -> Vec<String> {
        let is_it = |line: &&Value| {
            line["segments"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect::<String>()
                == word
        };
        serde_json::from_value(lines.iter().find(is_it).unwrap()["segments"].clone()).unwrap()
    };
    let run = grammaton(&["export", &out, "--original", &grid, "--format", "json"]).success();
    let notice = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(notice.contains("1 of 3 words are not in the results") && notice.contains("`new`"), "{notice}");
    let found = &objects(&stdout(&run))[0];
    let expected = [morphemes("loking"), vec!["new".to_owned()], morphemes("lok")].concat();
    assert_eq!(found["segments"], serde_json::json!(expected));
    assert_eq!((found["start"].as_f64(), found["end"].as_f64()), (Some(0.0), Some(1.5)));
    let written = exported(&dir, &["--original", &grid]);
    assert!(written.contains("\"text words\"") && written.contains("\"Loking new lok,\""), "{written}");
    // The level may be given: then lines are looked for in their order.
    refused(&["export", &out, "--original", &grid, "--level", "words"], &["line 1", "--tier"]);
}

#[test]
fn what_cannot_be_exported_is_refused_with_a_way_out() {
    let dir = trained();
    let out = at(&dir, "out");
    fs::write(dir.path().join("other.txt"), "nothing known").unwrap();
    fs::write(dir.path().join("other.cha"), "@Begin\n*CHI:\tother words .\n@End\n").unwrap();
    fs::write(dir.path().join("bad.eaf"), "<ANNOTATION_DOCUMENT>\n<TIER></ANNOTATION_DOCUMENT>").unwrap();
    for (args, parts) in [
        (vec!["export", out.as_str()], vec!["--original", "format"]),
        (vec!["export", "nowhere", "--format", "json"], vec!["nowhere", "no finished result"]),
        (vec!["export", &out, "--format", "json", "--decoder", "crf"], vec!["`crf`", "viterbi, mbr"]),
        (vec!["export", &out, "--original", &at(&dir, "other.txt")], vec!["other.txt", "CHAT", "TextGrid"]),
        (vec!["export", &out, "--original", &at(&dir, "none.cha")], vec!["none.cha", "cannot read"]),
        (vec!["export", &out, "--original", &at(&dir, "other.cha")], vec!["line 1", "`other words`"]),
        (vec!["export", &out, "--original", &at(&dir, "other.cha"), "--tier", "x"], vec!["--tier"]),
        (vec!["export", &out, "--original", &at(&dir, "bad.eaf")], vec!["bad.eaf:2", "not well-formed"]),
        (
            vec!["export", &out, "--original", &at(&dir, "other.cha"), "--format", "tsv"],
            vec!["tsv", "--original"],
        ),
        (vec!["export", &out, "--format", "chat", "--language", "a b"], vec!["code of a language"]),
        (vec!["export", &out, "--format", "tsv", "--level", "words"], vec!["--level", "tsv"]),
        (
            vec!["export", &out, "--format", "latex-scores", "--decoder", "mbr"],
            vec!["--decoder", "latex-scores"],
        ),
        (vec!["parse", &out, &at(&dir, "text.txt"), "--level", "words"], vec!["--level", "--format json"]),
    ] {
        refused(&args, &parts);
    }
    // A word that CHAT reads as something else: nothing is written.
    let file = at(&dir, "x.cha");
    fs::write(dir.path().join("text.txt"), "(ab\n(ab ba\n").unwrap();
    grammaton(&["train", &at(&dir, "job.toml"), "-q", "--overwrite"]).success();
    refused(&["export", &out, "--format", "chat", "--out", &file], &["line 1", "CHAT", "--original"]);
    assert!(!dir.path().join("x.cha").exists());
}
