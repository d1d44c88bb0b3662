//! Pieces of HTML that the report and the pages of a service share.
//!
//! All HTML is written with [`maud::html!`], which escapes every value that is not of the type [`Markup`].

use maud::{Markup, Render, html};

/// Text of a page or a part. Control characters, which browsers do not show, are replaced by U+FFFD.
pub fn visible(markup: Markup) -> String {
    let is_hidden = |letter: char| letter.is_control() && letter != '\n';
    match markup.into_string() {
        text if text.contains(is_hidden) => text.replace(is_hidden, "\u{fffd}"),
        text => text,
    }
}

/// A coordinate of a drawing, printed with one decimal.
pub struct Tenths(pub f64);

impl Render for Tenths {
    fn render_to(&self, buffer: &mut String) {
        format_args!("{:.1}", self.0).render_to(buffer);
    }
}

/// Bars with names and labels, as long as their share of 1. Lengths are CSS classes, so that pages whose policy forbids inline styles can
/// show them; [`bar_lengths`] defines the classes.
pub fn bars<'a>(rows: impl IntoIterator<Item = (&'a str, f64, String)>) -> Markup {
    html! {
        ol.strings {
            @for (name, share, number) in rows {
                @let percent = (100.0 * share).clamp(0.0, 100.0);
                li class=(format_args!("w{percent:.0}")) { span { (name) } b { (number) } }
            }
        }
    }
}

/// Style sheet for the lengths of bars.
pub fn bar_lengths() -> String {
    (0..=100).map(|percent| format!(".w{percent}{{--w:{percent}%}}")).collect::<String>() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lengths_of_bars_are_in_the_style_sheet() {
        let html = bars([
            ("<b>", 0.374, "3".to_owned()),
            ("c", f64::NAN, "–".to_owned()),
            ("d", 7.0, "7".to_owned()),
        ])
        .into_string();
        assert!(html.contains("<li class=\"w37\"><span>&lt;b&gt;</span><b>3</b></li>"), "{html}");
        assert!(html.contains("w100") && bar_lengths().contains(".w37{--w:37%}.w38{"), "{html}");
    }

    #[test]
    fn text_is_escaped_in_elements_and_attributes() {
        let text = "<a href=\"x\">&#39;%'\u{7}\u{85}\n";
        let html = visible(html! { p title=(text) { (text) } });
        let shown = "&lt;a href=&quot;x&quot;&gt;&amp;#39;%'\u{fffd}\u{fffd}\n";
        assert_eq!(html, format!("<p title=\"{shown}\">{shown}</p>"));
    }
}
