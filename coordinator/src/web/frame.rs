//! What is around every page: its head, the way to the others, and who looks.

use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::events::Part;
use crate::access::{Identity, Role};
use crate::report::markup::visible;

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
    pub body: Markup,
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
        // Without the role to act there are no buttons; the service would refuse them anyway.
        let class = who.filter(|who| !who.may(Role::Submit)).map(|_| "reader");
        let here = |of: Place| (*place == of).then_some("page");
        Html(visible(html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title) " · Grammaton" }
                    link rel="icon" href=(ICON);
                    link rel="stylesheet" href="/style.css";
                    script src="/live.js" defer {}
                }
                body class=[class] data-events=[events] {
                    a.skip href="#main" { "To the content" }
                    header {
                        nav aria-label="Pages" {
                            b { "Grammaton" }
                            a href="/" aria-current=[here(Place::Jobs)] { "Jobs" }
                            a href="/workers" aria-current=[here(Place::Workers)] { "Workers" }
                        }
                        span #live .quiet role="status" {}
                        @if let Some(who) = who {
                            form method="post" action="/logout" {
                                span.quiet { (who.name) } " " button { "Log out" }
                            }
                        }
                    }
                    main #main tabindex="-1" { (body) }
                }
            }
        }))
    }

    /// The same as an answer.
    pub fn respond(&self) -> Response {
        self.html().into_response()
    }
}

/// All parts of a page, in their order.
pub fn put_together(parts: &[Part]) -> Markup {
    html! {
        @for Part { id, html } in parts { div.part id=(id) { (PreEscaped(html)) } }
    }
}

/// The page that asks for a token; `again` after a wrong one.
pub fn login(again: bool) -> Response {
    let body = html! {
        h1 { "Grammaton" }
        @if again { p.bad role="alert" { "That is no token of this service." } }
        form.login method="post" action="/login" {
            label for="token" { "Token" }
            input #token name="token" type="password" autocomplete="current-password" required autofocus;
            button { "Log in" }
        }
        p.quiet { "The operator of the service has it, or makes one with " code { "grammaton token" } "." }
    };
    Frame { title: "Log in", place: Place::Elsewhere, events: None, who: None, body }.respond()
}
