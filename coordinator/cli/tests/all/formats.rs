//! Formats of texts: what each command does with each of them.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use grammaton::data::corpus::Unit;

use super::cli::{at, folder, grammaton, refused, stdout};

/// Words in the form of `line`, which gets the number of a word and the word.
fn of_words(line: impl Fn(usize, &str) -> String) -> Vec<u8> {
    let words = ["undo", "redo", "reread", "unread", "doer", "reader", "undoer", "rereader"];
    (0..).zip(words).map(|(at, word)| line(at, word) + "\n").collect::<String>().into_bytes()
}

fn spaced(word: &str) -> String {
    word.chars().map(String::from).collect::<Vec<_>>().join(" ")
}

fn utf16(text: &str) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

/// The formats with their names in the table, and a text in each.
fn formats() -> Vec<(&'static str, Vec<u8>)> {
    let packed = |magic: &[u8]| [magic, &[0; 600]].concat();
    let mut tar = vec![0; 257];
    tar[0] = b'a';
    let hex = |_, word: &str| {
        let codes: Vec<String> = word.chars().map(|letter| format!("{:04x}", u32::from(letter))).collect();
        format!("^^^ {} $$$", codes.join(" "))
    };
    vec![
        ("text", of_words(|_, word| word.to_owned())),
        ("word, tab, count", of_words(|at, word| format!("{word}\t{}", 90 / (at + 1)))),
        ("count, word", of_words(|at, word| format!("{} {word}", 90 / (at + 1)))),
        ("count, word as by `uniq -c`", of_words(|at, word| format!("{:>7} {word}", 90 / (at + 1)))),
        ("columns: number, text", of_words(|at, word| format!("{}\t{word}", at + 1))),
        ("columns under a header", {
            let rows = of_words(|at, word| format!("u{at}\t{word}"));
            [b"id\ttext\n", &rows[..]].concat()
        }),
        ("columns: several of text", of_words(|at, word| format!("{word}\tu{at}x"))),
        ("wordseg: `;esyll`, `;eword`", of_words(|_, word| format!("{} ;esyll ;eword", spaced(word)))),
        ("phones joined by `_`", of_words(|_, word| spaced(word).replace(' ', "_"))),
        ("phones between spaces", of_words(|_, word| spaced(word))),
        ("phones, `\\|` between words", of_words(|_, word| format!("{} | d o", spaced(word)))),
        ("code points (MorphAGram)", of_words(hex)),
        ("CHAT", {
            let lines = of_words(|_, word| format!("*CHI:\t{word} <un do> [/] &=laughs .\n%mor:\tx"));
            [b"@Begin\n", &lines[..], b"@End\n"].concat()
        }),
        ("columns by tabs (ELAN)", of_words(|at, word| format!("A\t\t{at}.1\t{at}.9\t{word} un do"))),
        ("columns by commas", of_words(|at, word| format!("\"u{at}\",\"{word}, do\""))),
        ("Toolbox", of_words(|at, word| format!("\\ref {at}\n\\tx {word}"))),
        ("JSON", of_words(|at, word| format!("{{\"id\": {at}, \"text\": \"{word}\"}}"))),
        ("trees in brackets", of_words(|_, word| format!("(S (A {word}) (B do))"))),
        ("rules, subtitles", of_words(|at, word| format!("{at}\n00:{at}0 --> 00:{at}5\n{word}"))),
        ("tags: `<unk>`, `<s>`", of_words(|_, word| format!("{word} <unk>"))),
        ("numbered lines", of_words(|at, word| format!("{}. {word}", at + 1))),
        ("comments: `#`", of_words(|at, word| if at == 0 { format!("# {word}") } else { word.to_owned() })),
        ("zero-width spaces", of_words(|_, word| format!("{word}\u{200b}do"))),
        ("byte-order marks inside", of_words(|at, word| ["", "\u{feff}"][at % 2].to_owned() + word)),
        (
            "line ends of CR alone",
            String::from_utf8(of_words(|_, word| word.to_owned())).unwrap().replace('\n', "\r").into(),
        ),
        ("UTF-16", utf16(&String::from_utf8(of_words(|_, word| word.to_owned())).unwrap())),
        ("NFC and NFD", of_words(|at, word| format!("{word}{}", ["\u{e9}", "e\u{301}"][at % 2]))),
        ("gzip", {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(&of_words(|_, word| word.to_owned())).unwrap();
            gzip.finish().unwrap()
        }),
        ("zstd", zstd::encode_all(&of_words(|_, word| word.to_owned())[..], 1).unwrap()),
        ("xz", packed(b"\xfd7zXZ\0")),
        ("bzip2", packed(b"BZh9")),
        ("zip", packed(b"PK\x03\x04")),
        ("tar", packed(&[&tar[..], b"ustar"].concat())),
    ]
}

/// What a command did, in a word or two; `parse` with the model in the folder `trained`.
fn outcome(command: &str, dir: &tempfile::TempDir, trained: &tempfile::TempDir) -> String {
    let path = at(dir, "text");
    let job = at(dir, "job.toml");
    let short = ["--chains", "1", "--sweeps", "2", "-q"];
    let assert = match command {
        "segment" => grammaton(&[&["segment", &path, "--grammar", "unigram"][..], &short].concat()),
        "morphemes" => grammaton(&[&["morphemes", &path][..], &short].concat()),
        "new" => grammaton(&["new", &path]),
        "parse" => grammaton(&["parse", &at(trained, "out"), &path]),
        "check" => grammaton(&["check", &job, "--no-estimate"]),
        _ => grammaton(&["train", &job, "--out", &at(dir, "out"), "--overwrite"]),
    };
    let output = assert.get_output();
    let printed = String::from_utf8_lossy(&output.stderr);
    let notices: Vec<&str> = printed.lines().filter(|line| line.starts_with("notice: ")).collect();
    let has = |part: &str| notices.iter().any(|notice| notice.contains(part));
    match output.status.code() {
        Some(2) if printed.contains("choose how it is read") => "asked",
        Some(2) if printed.contains("; decompress it") || printed.contains("; unpack it") => "refused",
        Some(0) if has("; read with") => "read",
        Some(0) if has("is read as text") => "notice",
        Some(0) if has("to choose from, as comments") => "asked",
        Some(0) if has("; the job has") => "read",
        Some(0) if has("NFC and NFD") => "notice",
        Some(0) if has("U+") || has("UTF-16") || has("carriage") => "read",
        Some(0) => "as text",
        code => panic!("{command}: {code:?}: {printed}"),
    }
    .to_owned()
}

#[test]
#[ignore = "slow"]
fn every_command_does_with_every_format_what_the_reference_says() {
    const COMMANDS: [&str; 6] = ["segment", "morphemes", "new", "check", "train", "parse"];
    let heads = COMMANDS.map(|command| format!("`{command}`"));
    let mut table =
        vec![format!("| format | {} |", heads.join(" | ")), "|---|---|---|---|---|---|---|".to_owned()];
    let job = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"text\"\n[inference]\nmax_rounds = 1\n";
    let of = |text: &[u8]| folder(&[("text", text), ("job.toml", job.as_bytes())]);
    let trained = of(&of_words(|_, word| word.to_owned()));
    grammaton(&["train", &at(&trained, "job.toml"), "--out", &at(&trained, "out")]).success();
    for (name, text) in formats() {
        let dir = of(&text);
        let cells = COMMANDS.map(|command| outcome(command, &dir, &trained));
        table.push(format!("| {name} | {} |", cells.join(" | ")));
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/input.md");
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains(&table.join("\n")),
        "docs/reference/input.md lacks this table:\n{}",
        table.join("\n")
    );
}

/// The segmented lines of a text without its spaces, and its notices.
fn segmented(command: &str, text: &[u8], options: &[&str]) -> (String, String) {
    let dir = folder(&[("text.txt", text)]);
    let path = at(&dir, "text.txt");
    let grammar: &[&str] = if command == "segment" { &["--grammar", "unigram"] } else { &[] };
    let args = [&[command, &path, "--chains", "1", "--sweeps", "2", "-q"], grammar, options].concat();
    let assert = grammaton(&args).success();
    let printed = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    (stdout(&assert).replace(' ', ""), printed.replace(&path, "text.txt"))
}

#[test]
fn numbers_are_no_letters_and_other_columns_come_back() {
    let (found, printed) = segmented("morphemes", b"8 undo\n15 redo\n22 unread\n", &[]);
    assert_eq!(found, "undo\nredo\nunread\n");
    assert_eq!(
        printed,
        "notice: text.txt: every line begins with a number (line 1: `8 undo`); read with --counts ones (as it is: --layout plain)\n"
    );
    let rows = b"u1\tundo\tA\n\nu2\tredo\tB\n";
    let (found, _) = segmented("segment", rows, &["--column", "2"]);
    assert_eq!(found, "u1\tundo\tA\n\nu2\tredo\tB\n");
    let (found, _) = segmented("segment", b"speaker\ttext\nA\tundo\nB\tredo\n", &[]);
    assert_eq!(found, "\nA\tundo\nB\tredo\n");
    let (found, _) =
        segmented("segment", b"@Begin\n*CHI:\tun do\n\tredo .\n%mor:\tx\n*MOT:\tredo [x] !\n@End\n", &[]);
    assert_eq!(found, "*CHI:\tundoredo\n*MOT:\tredo\n");
    let (found, _) = segmented("segment", b"un\xe2\x80\x8bdo\nun\xef\xbb\xbfread\n\xef\xbb\xbfdo\n", &[]);
    assert_eq!(found, "undo\nunread\ndo\n");
    let (found, _) = segmented("segment", b"^^^ 0075 006e $$$\n^^^ 006e 0075 $$$\n", &[]);
    assert_eq!(found, "un\nnu\n");
}

#[test]
fn markers_are_boundaries_with_and_without_the_unit() {
    let text = b"m i ;esyll ;eword d o ;esyll g i ;esyll ;eword\nd o ;esyll g i ;esyll ;eword\n";
    for options in [
        &[][..],
        &["--unit", "token"],
        &["--word-separator", ";eword", "--syllable-separator", ";esyll", "--unit", "token"],
    ] {
        let (found, printed) = segmented("segment", text, options);
        assert_eq!(found.replace('|', ""), "midogi\ndogi\n");
        assert_eq!(printed.contains("wordseg"), options.len() < 4, "{printed}");
    }
    let dir = folder(&[("text.txt", text)]);
    let out = at(&dir, "out");
    let args = [
        "segment",
        &at(&dir, "text.txt"),
        "--grammar",
        "unigram",
        "--chains",
        "1",
        "--sweeps",
        "2",
        "-q",
        "--out",
        &out,
    ];
    grammaton(&args).success();
    assert_eq!(fs::read_to_string(dir.path().join("out/corpus.txt")).unwrap(), "m i | d o g i\nd o g i\n");
    let summary = fs::read_to_string(dir.path().join("out/summary.json")).unwrap();
    assert!(summary.contains("token"), "there is gold to score with: {summary}");
}

#[test]
fn a_count_is_so_many_occurrences_if_asked_for() {
    let dir = folder(&[("words.txt", b"3 undo\n1 redo\n2 undo\n")]);
    let rows = |counts: &str| {
        let out = at(&dir, counts);
        let short = ["--chains", "1", "--sweeps", "2", "-q", "--out", &out];
        grammaton(&[&["morphemes", &at(&dir, "words.txt"), "--counts", counts][..], &short].concat())
            .success();
        let job = fs::read_to_string(dir.path().join(counts).join("job.toml")).unwrap();
        let corpus = fs::read_to_string(dir.path().join(counts).join("corpus.txt")).unwrap();
        let segmented = fs::read_to_string(dir.path().join(counts).join("segmented.txt")).unwrap();
        assert_eq!(segmented.replace(' ', ""), "undo\nredo\nundo\n");
        (corpus, job.contains("counts = \"full\""))
    };
    assert_eq!(rows("ones"), ("undo\nredo\nundo\n".to_owned(), false));
    assert_eq!(rows("full"), ("3 undo\n1 redo\n2 undo\n".to_owned(), true));
    assert_eq!(rows("log"), ("2 undo\n1 redo\n2 undo\n".to_owned(), true));
    // A corpus that repeats its lines trains the same model.
    let model = |corpus: &str, name: &str| {
        fs::write(dir.path().join("corpus.txt"), corpus).unwrap();
        let job = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\n[inference]\nmax_rounds = 3\n";
        fs::write(dir.path().join("job.toml"), job).unwrap();
        let set = format!("corpus.counts={}", if corpus.contains(' ') { "full" } else { "none" });
        grammaton(&["train", &at(&dir, "job.toml"), "--out", &at(&dir, name), "--set", &set, "-q"]).success();
        let summary = fs::read_to_string(dir.path().join(name).join("summary.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&summary).unwrap()["parameters_sha256"].clone()
    };
    assert_eq!(
        model("3 undo\n1 redo\n2 undo\n", "counted"),
        model("undo\nundo\nundo\nredo\nundo\nundo\n", "repeated")
    );
}

#[test]
fn two_readings_are_two_commands_to_choose_from() {
    let dir = folder(&[
        ("words.tsv", b"undo\tun @@do\t100\nredo\tre @@do\t100\n"),
        ("text.txt", b"3 cats\n4 dogs\n"),
    ]);
    let path = at(&dir, "words.tsv");
    let parts = [
        "all lines have 3 columns by tabs, 2 of text",
        "--column 1`",
        "--column 2`",
        "`grammaton morphemes ",
    ];
    refused(&["morphemes", &path], &parts);
    for column in ["1", "2"] {
        grammaton(&["morphemes", &path, "--column", column, "--chains", "1", "--sweeps", "2", "-q"])
            .success();
    }
    refused(&["segment", &at(&dir, "text.txt")], &["--counts ones`", "--layout plain`"]);
    refused(
        &["segment", &path, "--column", "7"],
        &["words.tsv:1: the line has 3 of the columns", "corpus.column is 7"],
    );
    refused(&["segment", &path, "--column", "word"], &["no column is called `word`"]);
    refused(&["segment", &path, "--counts", "ones"], &["2 columns beside the number"]);
}

#[test]
fn containers_are_named_by_every_command() {
    let dir = folder(&[
        ("text.xz", b"\xfd7zXZ\0\0\0"),
        ("job.toml", b"[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"text.xz\"\n"),
    ]);
    let (path, job) = (at(&dir, "text.xz"), at(&dir, "job.toml"));
    for args in [["segment", &path], ["morphemes", &path], ["new", &path], ["check", &job], ["train", &job]] {
        refused(&args, &["text.xz: this is an xz file; decompress it with xz -d"]);
    }
}

#[test]
fn messages_name_the_file_of_the_user() {
    let dir = folder(&[
        ("words.txt", b"redo\nreread\nundo\nunread\n"),
        ("prefixes.txt", b"re-\nun-\n"),
        ("other.txt", b"zz-\n"),
    ]);
    let words = at(&dir, "words.txt");
    let args = ["morphemes", &words, "--chains", "1", "--sweeps", "4", "--prefixes"];
    let assert = grammaton(&[&args[..], &[&at(&dir, "prefixes.txt")]].concat()).success();
    let printed = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    let notice =
        format!("notice: {}: the hyphens at the edge of 2 affixes were left out\n", at(&dir, "prefixes.txt"));
    assert!(printed.contains(&notice), "{printed}");
    assert!(printed.contains(&format!("notice: {words}: no line has white space")), "{printed}");
    refused(
        &[&args[..], &[&at(&dir, "other.txt"), "-q"]].concat(),
        &[&format!("{}: no affix", at(&dir, "other.txt"))],
    );
}

#[test]
fn units_are_the_same_in_jobs_help_documents_and_python() {
    let read =
        |path: &str| fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let row = |text: &str, begin: &str| text.lines().find(|line| line.contains(begin)).unwrap().to_owned();
    let help = |args: &[&str]| {
        let assert = grammaton(args).success();
        String::from_utf8(assert.get_output().stdout.clone()).unwrap()
    };
    let texts = [
        row(&read("docs/JOB.md"), "| `unit` |"),
        row(&read("docs/reference/input.md"), "| `--unit` |"),
        row(&read("python/grammaton/run.py"), "`unit` is"),
        help(&["segment", "--help"]),
        help(&["eval", "segmentation", "--help"]),
        help(&["grammars", "--help"]),
    ];
    for unit in Unit::ALL {
        assert!(texts.iter().all(|text| text.contains(unit.name())), "{}: {texts:?}", unit.name());
        segmented("segment", "t\u{361}ʃʰ a\naː\n".as_bytes(), &["--unit", unit.name()]);
    }
    refused(&["segment", "text.txt", "--unit", "phone"], &["possible values: char, grapheme, ipa, token"]);
}

#[test]
fn segments_of_the_ipa_are_not_divided() {
    let text = "t\u{361}ʃʰaːt\u{361}ʃʰa\naːt\u{361}ʃʰaːt\u{361}ʃʰa\n";
    let dir = folder(&[("text.txt", text.as_bytes())]);
    let args = ["grammars", "unigram", "--corpus", &at(&dir, "text.txt"), "--unit"];
    let symbols = |unit| {
        let assert = grammaton(&[&args[..], &[unit]].concat()).success();
        stdout(&assert).lines().filter(|line| line.contains("Char -->")).count()
    };
    assert_eq!((symbols("ipa"), symbols("char")), (3, 6), "t\u{361}ʃʰ, aː, a");
    for (unit, is_told) in [("char", true), ("grapheme", true), ("ipa", false)] {
        let (_, printed) = segmented("segment", text.as_bytes(), &["--unit", unit]);
        let notice = "text.txt: the text is in the International Phonetic Alphabet";
        assert_eq!(printed.contains(notice), is_told, "{printed}");
    }
}

#[test]
fn cleaning_needs_no_job_file() {
    let text = "Un-DO!\nre\u{301}do\n".as_bytes();
    let (found, _) =
        segmented("segment", text, &["--lowercase", "--punctuation", "drop", "--normalise", "nfc"]);
    assert_eq!(found, "undo\nr\u{e9}do\n");
    let dir = folder(&[("text.txt", b"Shosha\nchocho\n")]);
    let out = at(&dir, "out");
    let args = [
        "segment",
        &at(&dir, "text.txt"),
        "--grammar",
        "unigram",
        "--chains",
        "1",
        "--sweeps",
        "2",
        "-q",
        "--out",
        &out,
    ];
    let cleaning = ["--lowercase", "--digraphs", "sh ch", "--set", "inference.concentration=7.5"];
    grammaton(&[&args[..], &cleaning].concat()).success();
    let job = fs::read_to_string(dir.path().join("out/job.toml")).unwrap();
    for key in ["lowercase = true", "digraphs = [\"sh\", \"ch\"]", "concentration = 7.5"] {
        assert!(job.contains(key), "{key}: {job}");
    }
    let digest = |dir: &std::path::Path| {
        let summary = fs::read_to_string(dir.join("summary.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&summary).unwrap()["parameters_sha256"].clone()
    };
    grammaton(&["train", &at(&dir, "out/job.toml"), "--out", &at(&dir, "again"), "-q"]).success();
    assert_eq!(digest(&dir.path().join("out")), digest(&dir.path().join("again")));
    let text = at(&dir, "text.txt");
    // A digraph that a boundary of the gold segmentation divides is two symbols.
    let (found, _) = segmented("segment", b"mis hap\nshop\n", &["--digraphs", "sh"]);
    assert_eq!(found, "mishap\nshop\n");
    refused(&["segment", &text, "--set", "corpus.path=x"], &["--set corpus.path: the text is the argument"]);
    refused(&["segment", &text, "--set", "corpus.lowercas=true"], &["did you mean"]);
    refused(&["segment", &text, "--set", "inference.sed=2", "-q"], &["did you mean"]);
}
