//! LaTeX: numbered examples with a line of segments, one for glosses and one for a translation, as `gb4e` and `linguex` read them; and tables.
//!
//! Law: outside of the commands that are written here, no character has a meaning for TeX, and no two of them become one (`--`, `''`).

use anyhow::Result;

use super::line::Line;

/// The text before the first example.
pub const BEGIN: &str = "% Examples for the package gb4e: \\usepackage{gb4e}; \\noautomath\n\\begin{exe}\n";
/// The text after the last example.
pub const END: &str = "\\end{exe}\n";

/// The example of a line; nothing for an empty line.
pub fn line(line: &Line) -> Result<String> {
    line.check()?;
    if line.words.is_empty() {
        return Ok(String::new());
    }
    let words: Vec<String> = line
        .words
        .iter()
        .map(|word| {
            let segments: Vec<String> = word.segments.iter().map(|it| escaped(&it.text)).collect();
            let text = apart(&segments.join("-"));
            // A bracket behind the end of a row would be an argument of it, and a word with a space two.
            if text.contains(' ') || text.starts_with('[') { format!("{{{text}}}") } else { text }
        })
        .collect();
    let source = [line.source.id.clone(), line.source.speaker.clone()].into_iter().flatten();
    let source: Vec<String> = source.map(|text| escaped(&text)).collect();
    let source = if source.is_empty() { String::new() } else { format!(" ({})", source.join(", ")) };
    let glosses = vec!["{}"; words.len()].join(" ");
    let number = line.number;
    Ok(format!("\\ex % line {number}\n\\gll {}\\\\\n     {glosses}\\\\\n\\glt `'{source}\n", words.join(" ")))
}

/// A table with a row of names, one of rules, and rows of cells: the first column to the left, others to the right.
pub fn table(names: &[&str], rows: &[Vec<String>]) -> String {
    let row = |cells: &mut dyn Iterator<Item = &str>| {
        cells.map(escaped).collect::<Vec<_>>().join(" & ") + " \\\\\n"
    };
    let columns = "r".repeat(names.len().saturating_sub(1));
    let mut text = format!("% \\usepackage{{booktabs}}\n\\begin{{tabular}}{{l{columns}}}\n\\toprule\n");
    text += &row(&mut names.iter().copied());
    text += "\\midrule\n";
    rows.iter().for_each(|cells| text += &row(&mut cells.iter().map(String::as_str)));
    text + "\\bottomrule\n\\end{tabular}\n"
}

/// The text without characters that have a meaning for TeX.
pub fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut last = ' ';
    for letter in text.chars() {
        // Pairs that fonts make one character of.
        if is_of_ligature(last) && is_of_ligature(letter) {
            written += "{}";
        }
        match letter {
            '\\' => written += "\\textbackslash{}",
            '{' | '}' | '$' | '&' | '#' | '_' | '%' => written.extend(['\\', letter]),
            '^' => written += "\\textasciicircum{}",
            '~' => written += "\\textasciitilde{}",
            '<' => written += "\\textless{}",
            '>' => written += "\\textgreater{}",
            '|' => written += "\\textbar{}",
            '"' => written += "\\textquotedbl{}",
            _ => written.push(letter),
        }
        last = letter;
    }
    written
}

/// The text without two hyphens beside each other, which are a dash.
fn apart(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter == '-' && written.ends_with('-') {
            written += "{}";
        }
        written.push(letter);
    }
    written
}

fn is_of_ligature(letter: char) -> bool {
    matches!(letter, '-' | '`' | '\'' | ',' | '?' | '!')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::line::tests::{any_lines, any_text, line as words};
    use super::*;

    /// What TeX prints for an escaped text.
    fn printed(mut text: &str) -> String {
        let names = [
            ("\\textbackslash{}", "\\"),
            ("\\textasciicircum{}", "^"),
            ("\\textasciitilde{}", "~"),
            ("\\textless{}", "<"),
            ("\\textgreater{}", ">"),
            ("\\textbar{}", "|"),
            ("\\textquotedbl{}", "\""),
            ("{}", ""),
        ];
        let mut found = String::new();
        while let Some(letter) = text.chars().next() {
            if let Some((name, of)) = names.iter().find(|(name, _)| text.starts_with(name)) {
                found += of;
                text = &text[name.len()..];
            } else if letter == '\\' {
                let next = text[1..].chars().next().unwrap();
                assert!("{}$&#_%".contains(next), "{text}");
                found.push(next);
                text = &text[2..];
            } else {
                assert!(!"{}$&#_%^~".contains(letter), "{text}");
                found.push(letter);
                text = &text[letter.len_utf8()..];
            }
        }
        found
    }

    proptest! {
        #[test]
        fn any_text_is_printed(text in any_text()) {
            prop_assert_eq!(printed(&escaped(&text)), text);
        }

        #[test]
        fn any_line_is_an_example_or_refused(lines in any_lines()) {
            for found in lines {
                let Ok(text) = line(&found) else {
                    prop_assert!(found.check().is_err());
                    continue;
                };
                let n_rows = if found.words.is_empty() { 0 } else { 4 };
                prop_assert_eq!(text.lines().count(), n_rows);
                prop_assert!(!text.contains("--"));
            }
        }
    }

    #[test]
    fn an_example_has_a_place_for_each_gloss() {
        let expected = "\\ex % line 3\n\\gll un-do it\\_\\\\\n     {} {}\\\\\n\\glt `'\n";
        assert_eq!(line(&words(3, &[&["un", "do"], &["it_"]])).unwrap(), expected);
        assert!(line(&words(3, &[&["[a"]])).unwrap().contains("\\gll {[a}\\\\"));
    }

    #[test]
    fn a_table_has_rules_and_escaped_cells() {
        let found = table(&["", "F1"], &[vec!["a_b".to_owned(), "0.5".to_owned()]]);
        let expected = "% \\usepackage{booktabs}\n\\begin{tabular}{lr}\n\\toprule\n & F1 \\\\\n\\midrule\na\\_b & 0.5 \\\\\n\\bottomrule\n\\end{tabular}\n";
        assert_eq!(found, expected);
    }
}
