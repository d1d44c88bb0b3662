//! The page of annotations: its HTML, style and script, and the kinds of its other answers.

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};
use training::report::STYLE;

use super::session::Failed;

/// What differs between pages.
pub struct Page<'a> {
    /// What is annotated.
    pub title: &'a str,
    /// Where the annotations are.
    pub about: Markup,
    /// Why the reader may change nothing, if so.
    pub refusal: Option<&'a str>,
}

impl Page<'_> {
    /// The whole page.
    pub fn html(&self) -> Html<String> {
        let Page { title, about, refusal } = self;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { "Annotate · Grammaton" }
                    link rel="icon" href="data:,";
                    link rel="stylesheet" href="style.css";
                    script src="annotate.js" defer {}
                }
                body data-refusal=[refusal] {
                    main {
                        h1 { "Annotate " (title) }
                        p.quiet { (about) }
                        @if let Some(refusal) = refusal { p { (refusal) } }
                        div.controls {
                            button #learn disabled[refusal.is_some()] { "Learn again" }
                            button #undo disabled { "Undo" }
                            a.button href="segmented.txt" download { "Save the segmentation" }
                            a.button href="annotated.txt" download { "Save the annotations" }
                            span #status role="status" aria-live="polite" { "Loading…" }
                        }
                        div #news hidden {}
                        div.columns {
                            section aria-labelledby="shown" {
                                h2 #shown { "Suggested lines" }
                                div.controls #views {
                                    button data-view="suggested" { "Suggested" }
                                    button data-view="annotated" { "Annotated" }
                                    button data-view="all" { "All lines" }
                                }
                                ol #lines {}
                                button #more hidden { "More lines" }
                                p.quiet {
                                    "Shaded: how probable a boundary is. Framed: positions that are known in a line of which others are not. Keys: ← → go from gap to gap, space or enter makes or takes away a boundary, n and p go to the next line and back, r says that a line is right, u undoes."
                                }
                            }
                            section aria-labelledby="words-title" {
                                h2 #words-title { "Words" }
                                input #search type="search" placeholder="Find a word" aria-label="Find a word";
                                ol #words {}
                            }
                        }
                    }
                }
            }
        };
        Html(page.into_string())
    }
}

/// Its style sheet.
pub async fn style() -> Response {
    let sheet = format!("{STYLE}{}", include_str!("style.css"));
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], sheet).into_response()
}

/// Its script.
pub async fn script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("annotate.js")).into_response()
}

/// An answer to the script.
pub fn json(found: Result<Vec<u8>, Failed>) -> Response {
    found.map(|json| ([(header::CONTENT_TYPE, "application/json")], json)).into_response()
}

/// A text that is saved as a file of this name.
pub fn saved(found: Result<Vec<u8>, Failed>, name: &str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    found.map(|text| (headers, text)).into_response()
}
