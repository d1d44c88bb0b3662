//! Text as HTML.

/// Of writing to a string.
pub(super) const WRITTEN: &str = "a string takes all text";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_through() {
        assert_eq!(
            escape("<a href=\"x\">&#39;%'\u{7}"),
            "&lt;a href=&quot;x&quot;&gt;&amp;#39;%&#39;\u{fffd}"
        );
    }
}
