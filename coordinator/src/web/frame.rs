//! What is around every page: its head, the way to the others, and who looks.

use axum::response::{Html, IntoResponse, Response};

use super::events::Part;
use crate::access::{Identity, Role};
use crate::report::html::escape;

/// A page.
pub struct Frame<'a> {
    /// Of the window.
    pub title: &'a str,
    /// Where it stands among the others.
    pub place: Place,
    /// Where the parts come from that change.
    pub events: Option<&'a str>,
    /// Who looks, where that has to be shown.
    pub who: Option<&'a Identity>,
    /// What is on it.
    pub body: &'a str,
}

/// A page that others lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// All jobs.
    Jobs,
    /// All workers.
    Workers,
    /// None of these.
    Elsewhere,
}

const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M8 2v5M8 7L3 13M8 7l5 6' \
                    stroke='%232f5aa8' stroke-width='2' fill='none'/%3E%3C/svg%3E";

impl Frame<'_> {
    /// As it is sent.
    pub fn html(&self) -> Html<String> {
        let Frame { title, place, events, who, body } = self;
        let events = events.map_or(String::new(), |events| format!(" data-events=\"{}\"", escape(events)));
        // Whoever may not act is shown no buttons; the service would refuse them anyway.
        let class = if who.is_some_and(|who| !who.may(Role::Submit)) { " class=\"reader\"" } else { "" };
        let link = |to: &str, name: &str, of: Place| {
            let here = if *place == of { " aria-current=\"page\"" } else { "" };
            format!("<a href=\"{to}\"{here}>{name}</a>")
        };
        let who = who.map_or(String::new(), |who| {
            let name = escape(&who.name);
            format!("<form method=\"post\" action=\"/logout\"><span class=\"quiet\">{name}</span> <button>Log out</button></form>")
        });
        Html(format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{} · Grammaton</title>\n\
             <link rel=\"icon\" href=\"{ICON}\">\n<link rel=\"stylesheet\" href=\"/style.css\">\n<script src=\"/live.js\" defer></script>\n\
             </head>\n<body{class}{events}>\n<a class=\"skip\" href=\"#main\">To the content</a>\n<header><nav aria-label=\"Pages\">\
             <b>Grammaton</b>{}{}</nav><span id=\"live\" class=\"quiet\" role=\"status\"></span>{who}</header>\n\
             <main id=\"main\" tabindex=\"-1\">\n{body}</main>\n</body>\n</html>\n",
            escape(title),
            link("/", "Jobs", Place::Jobs),
            link("/workers", "Workers", Place::Workers),
        ))
    }

    /// The same as an answer.
    pub fn respond(&self) -> Response {
        self.html().into_response()
    }
}

/// All parts of a page, in their order.
pub fn put_together(parts: &[Part]) -> String {
    let part = |Part { id, html }: &Part| format!("<div class=\"part\" id=\"{id}\">{html}</div>\n");
    parts.iter().map(part).collect()
}

/// The page that asks for a token; `again` after a wrong one.
pub fn login(again: bool) -> Response {
    let wrong =
        if again { "<p role=\"alert\" class=\"bad\">That is no token of this service.</p>\n" } else { "" };
    let body = format!(
        "<h1>Grammaton</h1>\n{wrong}<form class=\"login\" method=\"post\" action=\"/login\">\n<label for=\"token\">Token</label>\n\
         <input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" required autofocus>\n\
         <button>Log in</button>\n</form>\n<p class=\"quiet\">Whoever runs the service has it, or makes one with \
         <code>grammaton token</code>.</p>\n"
    );
    Frame { title: "Log in", place: Place::Elsewhere, events: None, who: None, body: &body }.respond()
}
