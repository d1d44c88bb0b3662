//! Options about the text of `segment` and `morphemes`: how its lines are read, how they are cleaned, and further keys of the job. Every option is a
//! key of a job file.

use std::path::PathBuf;

use anyhow::Result;
use grammaton::data::corpus::Unit;
use segment::keys::Keys;

use crate::commands::eval::unit_parser;

/// Options about the text.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct ReadingOptions {
    /// Unit of a symbol [default: grapheme, unless the text is seen to be of tokens]
    #[arg(help_heading = "Text", long, value_parser = unit_parser())]
    pub unit: Option<Unit>,
    /// Kind of the lines: plain, whatever they look like; hex (code points, as of MorphAGram); chat (a transcript) [default: as they look]
    #[arg(help_heading = "Text", long, value_name = "KIND", value_parser = ["plain", "hex", "chat"])]
    pub layout: Option<String>,
    /// The column of the text, if tabs separate columns: its number from 1, or its name in the first line
    #[arg(help_heading = "Text", long, value_name = "N|NAME")]
    pub column: Option<String>,
    /// Meaning of a number beside each text: it is left out (ones), or the text occurs as often (full) or log₂(n + 1) times (log)
    #[arg(help_heading = "Text", long, value_parser = ["ones", "log", "full"])]
    pub counts: Option<String>,
    /// Separator of phones, such as _; words are then between spaces
    #[arg(help_heading = "Text", long, value_name = "MARK")]
    pub phone_separator: Option<String>,
    /// Separator of syllables, such as ;esyll, which is left out
    #[arg(help_heading = "Text", long, value_name = "MARK")]
    pub syllable_separator: Option<String>,
    /// Separator of words, such as ;eword
    #[arg(help_heading = "Text", long, value_name = "MARK")]
    pub word_separator: Option<String>,
    /// Unicode normal form
    #[arg(help_heading = "Text", long, value_name = "FORM", value_parser = ["nfc", "nfkc"])]
    pub normalise: Option<String>,
    /// Read the text in lower case
    #[arg(help_heading = "Text", long)]
    pub lowercase: bool,
    /// Punctuation: keep it as symbols, drop it, or read it as a word boundary
    #[arg(help_heading = "Text", long, value_name = "WHAT", value_parser = ["keep", "drop", "boundary"])]
    pub punctuation: Option<String>,
    /// Sequences of characters that are one symbol, with spaces between them, as in 'sh ch'
    #[arg(help_heading = "Text", long, value_name = "SYMBOLS")]
    pub digraphs: Option<String>,
    /// Gold segmentation to score against, in place of the spaces of the text: segmented lines of the text, or words with their analyses, as in
    /// `gladly<TAB>glad ly, gladly`, of which the best counts; lines that it lacks are not scored
    #[arg(help_heading = "Text", long, value_name = "FILE")]
    pub gold: Option<PathBuf>,
    /// Lines with their segmentation, of the text or not, in the forms of --gold: what is learned from them corrects what the models find. They are not
    /// scored
    #[arg(help_heading = "Text", long, value_name = "FILE")]
    pub annotated: Option<PathBuf>,
    /// Symbol that marks a known boundary, as in `un|likely`, in lines of the text or of --annotated: of the other positions of such a line nothing is known
    #[arg(help_heading = "Text", long, value_name = "SYMBOL")]
    pub boundary_mark: Option<String>,
    /// Symbol that marks a position where there is no boundary for certain, as in `li~kely`
    #[arg(help_heading = "Text", long, value_name = "SYMBOL")]
    pub joined_mark: Option<String>,
    /// Set a value of the job, as in --set inference.concentration=100; repeatable, the last one wins
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl ReadingOptions {
    /// All options as assignments of keys, those of `--set` last.
    pub fn keys(&self) -> Result<Keys> {
        let digraphs = self.digraphs.as_ref().map(|digraphs| {
            toml::Value::from(digraphs.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        });
        let text = |value: &Option<String>| value.clone().map(toml::Value::from);
        let file = |path: &Option<PathBuf>| -> Result<Option<toml::Value>> {
            let path = path.as_ref().map(std::path::absolute).transpose()?;
            Ok(path.map(|path| toml::Value::from(path.to_string_lossy().into_owned())))
        };
        let keys = [
            ("unit", self.unit.map(|unit| toml::Value::from(unit.name()))),
            ("layout", text(&self.layout)),
            ("column", text(&self.column)),
            ("counts", text(&self.counts)),
            ("phone_separator", text(&self.phone_separator)),
            ("syllable_separator", text(&self.syllable_separator)),
            ("word_separator", text(&self.word_separator)),
            ("normalise", text(&self.normalise)),
            ("lowercase", self.lowercase.then_some(toml::Value::from(true))),
            ("punctuation", text(&self.punctuation)),
            ("digraphs", digraphs),
            ("gold", file(&self.gold)?),
            ("annotated", file(&self.annotated)?),
            ("boundary_mark", text(&self.boundary_mark)),
            ("joined_mark", text(&self.joined_mark)),
        ];
        let assigned = |(key, value): (&str, Option<toml::Value>)| Some(format!("corpus.{key}={}", value?));
        let options = keys.into_iter().filter_map(assigned);
        Keys::new(options.chain(self.set.iter().cloned()).collect())
    }
}
