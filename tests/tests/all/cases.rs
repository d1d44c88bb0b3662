//! Inputs of other people: each in a folder with `cmd`, a line of shell. Law: the command ends as its row of [`CASES`] says. The folders are outside of
//! the repository; without them the test is skipped.

use std::fs;
use std::path::Path;
use std::process::Command;

use grammaton_tests::binary;

/// How a case ends.
struct Case {
    /// Name of its folder.
    name: &'static str,
    /// Exit codes that are right.
    codes: &'static [i32],
    /// Parts of standard error.
    says: &'static [&'static str],
    /// What neither standard output nor standard error has.
    absent: &'static [&'static str],
}

/// The cases that are settled, by name.
const CASES: [Case; 6] = [
    Case {
        name: "bom_inside_text",
        codes: &[0],
        says: &["text.txt:3: 1 byte-order mark (U+FEFF) inside the text was dropped"],
        absent: &["\u{feff}", "tmp"],
    },
    Case {
        name: "compressed_advice",
        codes: &[2],
        says: &["text.txt.xz: this is an xz file; decompress it with xz -d"],
        absent: &["UTF-8", "iconv"],
    },
    Case {
        name: "counts_before_words",
        codes: &[0],
        says: &["words.txt: every line begins with a number", "--counts ones"],
        absent: &["8 un ", "tmp"],
    },
    Case {
        name: "tab_columns",
        codes: &[2],
        says: &["words.tsv: all lines have 3 columns", "--column 1", "--column 2"],
        absent: &["F1"],
    },
    Case {
        name: "temp_path_in_message",
        codes: &[0],
        says: &["prefixes.txt: the hyphens at the edge of 2 affixes were left out"],
        absent: &["temporary", "/tmp", "no affix"],
    },
    Case {
        name: "wordseg_markers",
        codes: &[0],
        says: &["tagged.txt: wordseg's markers are in the lines"],
        absent: &["no line has", "/tmp"],
    },
];

#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_every_case_ends_as_its_row_says() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases");
    let programs = binary("grammaton").parent().expect("a program is in a folder").display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
    let mut failures = Vec::new();
    for Case { name, codes, says, absent } in CASES {
        let dir = tempfile::tempdir().unwrap();
        for file in fs::read_dir(cases.join(name)).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), dir.path().join(file.file_name())).unwrap();
        }
        let command = fs::read_to_string(dir.path().join("cmd")).unwrap();
        let run = Command::new("bash")
            .args(["-c", &command])
            .current_dir(dir.path())
            .env("PATH", &path)
            .output()
            .unwrap();
        let [out, errors] =
            [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let is_right = run.status.code().is_some_and(|code| codes.contains(&code))
            && says.iter().all(|part| errors.contains(part))
            && !absent.iter().any(|part| out.contains(part) || errors.contains(part));
        if !is_right {
            failures.push(format!("{name}: {:?}\n{out}\n{errors}", run.status.code()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
