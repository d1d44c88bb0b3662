//! Formatting of numbers, sizes, durations and tables, for terminals and browsers.
//!
//! Sizes are in decimal units (1 kB is 1000 bytes), since they stand beside transfer rates, which are decimal too.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr as _;

/// Whether a character changes how a terminal or a browser shows others, or is not shown: controls, marks of direction, invisible characters.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns text of others in a form that shows all of it on one line: hidden characters are escaped, as in `\u{202e}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |letter, shown| shown.extend(letter.escape_unicode()))
}

/// Escapes hidden characters of JSON, as JSON does; line ends between its values stay.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    escaped(json, |letter, shown| match letter {
        '\n' => shown.push('\n'),
        letter => {
            letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| *shown += &format!("\\u{unit:04x}"))
        }
    })
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_hidden(letter) {
            escape(letter, &mut shown);
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

/// Formats a duration with a suitable unit: `5.0 s`, `60 s`, `10 min`, `2.0 h`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Formats a number of bytes with a suitable unit: `999 B`, `1.5 kB`, `2.0 GB`.
pub fn bytes(size: u64) -> String {
    match size as f64 {
        b if b < 1e3 => format!("{b} B"),
        b if b < 1e6 => format!("{:.1} kB", b / 1e3),
        b if b < 1e9 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.1} GB", b / 1e9),
    }
}

/// Formats a number of bytes in whole kilobytes, rounded up, so that a file that is not empty has at least one.
pub fn kilobytes(size: u64) -> String {
    format!("{} kB", size.div_ceil(1000))
}

/// Formats a number of bytes as megabytes without unit, for columns whose head names the unit.
pub fn megabytes(size: u64) -> f64 {
    size as f64 / 1e6
}

/// Formats a number with thousands separators, and with enough digits to distinguish the ticks of an axis. Without ticks it has three
/// decimals below 100, and none above.
pub fn number(value: f64, ticks: &[f64]) -> String {
    let step = ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let decimals = match step {
        step if step.is_finite() => (-libm::log10(step).floor()).clamp(0.0, 6.0) as usize,
        _ if value.abs() >= 100.0 => 0,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let text = if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        text.trim_start_matches('-').to_owned()
    } else {
        text
    };
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    let sign = if sign.is_empty() { "" } else { "−" };
    format!("{sign}{grouped}{rest}")
}

/// Formats a whole number with thousands separators.
pub fn whole(value: f64) -> String {
    number(value, &[0.0, 1.0])
}

/// Formats a perplexity, which is infinite if some sentence has probability 0.
pub fn perplexity(value: f64) -> String {
    if value.is_finite() { number(value, &[]) } else { "∞".to_owned() }
}

/// Formats rows as lines with aligned columns. Every row has the same number of cells.
pub fn table(rows: &[Vec<String>]) -> Vec<String> {
    let n_columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    // `{:<width$}` would count characters instead of terminal columns.
    let padded = |(cell, width): (&String, &usize)| cell.clone() + &" ".repeat(width - cell.width());
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(padded);
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Law: all visible text keeps other text in its place; text without hidden characters stays as it is; JSON keeps its value.
        #[test]
        fn all_of_a_text_is_visible(parts: Vec<(String, u32)>) {
            let text: String = parts
                .iter()
                .flat_map(|(text, code)| [text.clone(), char::from_u32(code % 0x2100).map(String::from).unwrap_or_default()])
                .collect();
            let shown = visible(&text);
            prop_assert!(!shown.contains(is_hidden));
            prop_assert!(text.contains(is_hidden) || shown == text);
            let json = serde_json::to_string_pretty(&[&text, &text]).unwrap();
            let shown = visible_json(&json);
            prop_assert!(shown.chars().all(|letter| letter == '\n' || !is_hidden(letter)));
            prop_assert_eq!(serde_json::from_str::<[String; 2]>(&shown).unwrap(), [text.clone(), text]);
        }
    }

    #[test]
    fn escapes_and_marks_of_direction_are_shown() {
        let name = "a\u{1b}[2Jb\u{202e}c\u{200b}\u{9b}";
        assert_eq!(visible(name), "a\\u{1b}[2Jb\\u{202e}c\\u{200b}\\u{9b}");
        assert_eq!(visible("Zdź ćma 中文 كتاب"), "Zdź ćma 中文 كتاب");
    }

    #[test]
    fn durations_read_well() {
        assert_eq!([5.0, 60.0, 600.0, 7200.0].map(duration), ["5.0 s", "60 s", "10 min", "2.0 h"]);
    }

    #[test]
    fn sizes_read_well() {
        let sizes = [0, 999, 1000, 1500, 2_340_000, 5_000_000_000];
        assert_eq!(sizes.map(bytes), ["0 B", "999 B", "1.0 kB", "1.5 kB", "2.3 MB", "5.0 GB"]);
        assert_eq!([0, 1, 123_456].map(kilobytes), ["0 kB", "1 kB", "124 kB"]);
        assert_eq!(megabytes(2_500_000), 2.5);
    }

    #[test]
    fn numbers_are_grouped_and_signed() {
        assert_eq!(number(-21000.0, &[-22000.0, -21000.0]), "−21\u{202f}000");
        assert_eq!(number(0.4, &[0.2, 0.4]), "0.4");
        assert_eq!(number(0.0, &[-0.1, 0.0]), "0.0");
        assert_eq!(number(0.8421, &[]), "0.842");
        assert_eq!(whole(1_234_567.0), "1\u{202f}234\u{202f}567");
    }

    #[test]
    fn an_infinite_perplexity_has_a_sign() {
        assert_eq!([9.25, f64::INFINITY].map(perplexity), ["9.250", "∞"]);
    }

    #[test]
    fn columns_are_aligned_by_width() {
        let row = |name: &str| vec![name.to_owned(), "|".to_owned()];
        let rows = ["name", "語言學", "café", "cafe\u{301}", "ｱｲ", "한국"].map(row);
        assert_eq!(
            table(&rows),
            ["name    |", "語言學  |", "café    |", "cafe\u{301}    |", "ｱｲ      |", "한국    |"]
        );
    }
}
