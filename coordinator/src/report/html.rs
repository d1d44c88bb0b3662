//! Text as HTML, and what is drawn with nothing else.

use std::fmt::Write as _;

/// Of writing to a string.
pub(crate) const WRITTEN: &str = "a string takes all text";

/// `text` such that a browser shows it as it is, inside elements and inside quoted attributes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter if letter.is_control() && letter != '\n' => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Names with numbers, each before a bar as long as its share of 1. Lengths are classes, so that pages that allow no styles in their text
/// can show them; [`bar_lengths`] is what those mean.
pub fn bars<'a>(rows: impl IntoIterator<Item = (&'a str, f64, String)>) -> String {
    let mut html = String::from("<ol class=\"strings\">\n");
    for (name, share, number) in rows {
        let (name, percent) = (escape(name), (100.0 * share).clamp(0.0, 100.0));
        writeln!(html, "<li class=\"w{percent:.0}\"><span>{name}</span><b>{number}</b></li>").expect(WRITTEN);
    }
    html + "</ol>\n"
}

/// A style sheet for the lengths of bars.
pub fn bar_lengths() -> String {
    (0..=100).map(|percent| format!(".w{percent}{{--w:{percent}%}}")).collect::<String>() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_lengths_that_the_sheet_knows() {
        let html = bars([
            ("<b>", 0.374, "3".to_owned()),
            ("c", f64::NAN, "–".to_owned()),
            ("d", 7.0, "7".to_owned()),
        ]);
        assert!(html.contains("<li class=\"w37\"><span>&lt;b&gt;</span><b>3</b></li>"), "{html}");
        assert!(html.contains("w100") && bar_lengths().contains(".w37{--w:37%}.w38{"), "{html}");
    }

    #[test]
    fn nothing_gets_through() {
        assert_eq!(
            escape("<a href=\"x\">&#39;%'\u{7}"),
            "&lt;a href=&quot;x&quot;&gt;&amp;#39;%&#39;\u{fffd}"
        );
    }
}
