//! `grammaton new`: the job file that it prints for a corpus can be trained.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::cli::{at, folder, grammaton, stdout};

const CONLLU: &str = "# text = the dog barks\n1\tthe\tthe\tDET\t_\t_\t2\tdet\t_\t_\n2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\t_\n\
    3\tbarks\tbark\tVERB\t_\t_\t0\troot\t_\t_\n\n1\tit\tit\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tbarks\tbark\tVERB\t_\t_\t0\troot\t_\t_\n\n";
const TREES: &str =
    "(ROOT (S (NP (DT the) (NN dog)) (VP (VB barks))))\n(ROOT (S (NP (PR it)) (VP (VB barks))))\n";

#[test]
fn every_job_that_is_printed_can_be_trained() {
    let cases = [
        ("text.txt", "ba da\nda ba ba\nbaba da\n", None, "words"),
        ("tokens.txt", "b a | d a\nd a | b a | b a\n", None, "words"),
        ("with \"quotes\".txt", "ba da\nda ba\n", Some("words"), "words"),
        ("words.txt", "ba da\nda ba\nda di\n", Some("morphemes"), "morphemes"),
        ("train.conllu", CONLLU, None, "dependencies"),
        ("train.mrg", TREES, None, "treebank"),
    ];
    for (name, text, kind, out) in cases {
        let dir = folder(&[(name, text.as_bytes())]);
        let mut args = vec!["new".to_owned(), at(&dir, name)];
        args.extend(kind.iter().flat_map(|kind| ["--kind".to_owned(), (*kind).to_owned()]));
        let args: Vec<&str> = args.iter().map(|arg| &arg[..]).collect();
        let job = stdout(&grammaton(&args).success());
        assert!(!job.contains('@'), "{job}");
        assert_eq!(job.contains("unit = \"token\""), name == "tokens.txt", "{job}");
        fs::write(dir.path().join("job.toml"), &job).unwrap();
        grammaton(&["train", &at(&dir, "job.toml"), "--quiet", "--set", "inference.max_rounds=4"]).success();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let packed = format!("{name}.gz");
        fs::write(dir.path().join(&packed), gzip.finish().unwrap()).unwrap();
        let (path, packed) = (at(&dir, name), at(&dir, &packed));
        let args: Vec<&str> = args.iter().map(|arg| if **arg == path { &packed[..] } else { *arg }).collect();
        let of_packed = stdout(&grammaton(&args).success());
        assert_eq!(of_packed.lines().count(), job.lines().count());
        assert_eq!(of_packed.contains("unit = \"token\""), job.contains("unit = \"token\""));
        assert!(dir.path().join(out).join("summary.json").exists(), "{name}");
    }
}

/// Without a corpus the job is that of the kind, with a path to change; a corpus that is not there is one line.
#[test]
fn a_job_is_printed_without_a_corpus_as_well() {
    let kinds = ["words", "morphemes", "dependencies", "treebank"];
    let jobs = kinds.map(|kind| stdout(&grammaton(&["new", "--kind", kind]).success()));
    for (kind, job) in kinds.iter().zip(&jobs) {
        assert!(job.contains(&format!("dir = \"{kind}\"")) && !job.contains('@'), "{job}");
    }
    assert_eq!(stdout(&grammaton(&["new"]).success()), jobs[0]);
    grammaton(&["new", "nowhere.txt"]).code(2);
    let dir = folder(&[("latin1.txt", b"caf\xe9")]);
    grammaton(&["new", &at(&dir, "latin1.txt")]).code(2);
}
