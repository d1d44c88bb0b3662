//! The reference of the job file, generated from its keys: `docs/JOB.md`, and the output of `grammaton keys`.

use std::fmt::Write as _;

use grammaton::grammar::auto::FAMILY;

use super::Job;
use super::keys::KeyOfJob as _;
use grammaton::settings::key::Key;
use grammaton::settings::{Estimator, Model};

const HEAD: &str = "\
# The job file

<!-- Made by `grammaton keys --markdown`; do not edit. -->

A job file is TOML with the tables `[model]`, `[corpus]`, `[inference]` and `[output]`. Paths are relative to the file. On the command
line, `--set table.key=value` overrides any key, with paths relative to the current folder; several values with commas between them,
or tables `[[sweep]]` with lists, make a grid of the keys of `[inference]`. A point of a grid is the job with its values and no grid,
to the last bit.

A key is refused where no model and method of the job reads it. A key that changes nothing because of another one is accepted with
a notice. `grammaton keys rho` shows one key.
";

const GRAMMARS: &str = "
## Grammars made from the corpus

Values of `model.grammar` for corpora of sentences. A name has parts: the levels of collocations (none in `unigram`), `syllable` for words of
syllables instead of symbols, `stress` for marks of stress, and the edge at which function words stand. Segments are the words with the function words, or the prefixes, stems and
suffixes. `grammaton grammars NAME --corpus FILE` prints any of them as a file to edit.

With syllables every symbol is a vowel or a consonant. A nucleus is a sequence of vowels, onsets and codas are sequences of consonants. An
utterance without a vowel is a segment, the nonterminal `WithoutNucleus`, so that every utterance has a derivation. Vowels are those that
`model.vowels` names. If it is empty, letters that are vowels or consonants in whatever is written with them (Latin, Cyrillic and Greek script, the
International Phonetic Alphabet) are known, and other symbols are distinguished by their neighbours (Sukhotin's algorithm). Letters of transcriptions that
use them otherwise are not believed: where vowels and consonants would alternate much less than by neighbours alone. Where letters are
believed, a symbol that they do not tell and that mostly has a vowel on one side, such as the *h* of *th* and *sh*, is a consonant.

With `model.inner_vowels`, as `grammaton segment` has it, a vowel with which at most a hundredth of the utterances begin that would if they began with
any symbol, ten at least, is an inner one, such as the last one of German *habe*: only the first word of an utterance can begin with it (`InnerWord`).

With `stress` a mark after a nucleus makes its syllable a stressed one (Börschinger & Johnson 2014), and words learn which patterns of stressed
and unstressed syllables they have. The marks are those of `model.stress`.

In `morph1` and `morph15` (MorphAGram's grammars 1 and 15) a line is a word. If the corpus has the symbols `^^^` and `$$$`, they are the marks at both
ends of every word, and the grammars are the published ones; otherwise a word of `morph1` has a prefix and a suffix, one of them or none.

| grammar | meaning |
|---|---|
";

/// All keys in Markdown, table by table.
pub fn markdown() -> String {
    let mut text = HEAD.to_owned();
    let titles = [
        ("model", "The model to train."),
        ("corpus", "The training data."),
        ("inference", "The method of training and its settings."),
        ("output", "The results."),
    ];
    for (table, title) in titles {
        write!(text, "\n## `[{table}]`\n\n{title}\n\n").expect(WRITTEN);
        text.push_str("| key | default | values | read by | meaning |\n|---|---|---|---|---|\n");
        for key in Job::keys().iter().filter(|key| key.table == table) {
            let cells =
                [format!("`{}`", key.name), default(key), values(key), readers(key), key.help.clone()];
            let cells = cells.map(|cell| cell.replace('|', "\\|"));
            writeln!(text, "| {} |", cells.join(" | ")).expect(WRITTEN);
        }
    }
    by_model(&mut text);
    text.push_str(GRAMMARS);
    for (name, auto) in FAMILY {
        writeln!(text, "| `auto:{name}` | {} |", auto.describe()).expect(WRITTEN);
    }
    text
}

const BY_MODEL: &str = "
## Keys by model and method

What a model and a method read besides the keys that every model and method reads.

| `model.kind` | `inference.method` | keys |
|---|---|---|
";

/// Adds a table of the keys that each model and each of its methods reads.
fn by_model(text: &mut String) {
    text.push_str(BY_MODEL);
    let keys = Job::keys();
    for model in Model::all() {
        let by_all = |key: &&Key| model.estimators().iter().all(|&by| key.is_read_by(model, by));
        let everywhere = |key: &&Key| {
            Model::all().all(|model| model.estimators().iter().all(|&by| key.is_read_by(model, by)))
        };
        let mut row = |method: &str, keys: Vec<&Key>| {
            let names: Vec<String> = keys.iter().map(|key| format!("`{}`", key.path())).collect();
            writeln!(text, "| {} | {method} | {} |", model.name(), names.join(", ")).expect(WRITTEN);
        };
        let special: Vec<&Key> = keys.iter().filter(|key| !everywhere(key)).collect();
        row("every method", special.iter().copied().filter(by_all).collect());
        for &by in model.estimators() {
            let its_own = |key: &&Key| !by_all(key) && key.is_read_by(model, by);
            row(Estimator::name(by), special.iter().copied().filter(its_own).collect());
        }
    }
}

/// Formats a key for a terminal.
pub fn of_key(key: &Key) -> String {
    let text = format!(
        "{}\n  {}\n  default: {}\n  values: {}\n  read by: {}\n",
        key.path(),
        key.help,
        default(key),
        values(key),
        readers(key)
    );
    text.replace('`', "")
}

const WRITTEN: &str = "a String takes all that is written to it";

/// Formats the default of a key, by kind of model if it differs.
fn default(key: &Key) -> String {
    let mut text = match key.general_default() {
        _ if key.required => "required".to_owned(),
        Some(value) => format!("`{value}`"),
        None => "none".to_owned(),
    };
    for &(kind, _) in key.defaults {
        if let Some(value) = key.default_of(kind) {
            write!(text, "; `{value}` of {}", Model::of(kind, false).name()).expect(WRITTEN);
        }
    }
    text
}

fn values(key: &Key) -> String {
    let range = key.range.map_or(String::new(), |range| format!(", {range}"));
    format!("{}{range}", key.values)
}

fn readers(key: &Key) -> String {
    let need = key.need.map_or(String::new(), |need| format!("; takes {}", need.text));
    format!("{}{need}", key.readers_in_words())
}
