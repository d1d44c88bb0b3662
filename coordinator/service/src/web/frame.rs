//! The frame of every page: head, navigation, and the user.

use axum::response::{Html, IntoResponse, Response};
use fleet::access::{Identity, Role};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use training::report::markup::visible;

use super::events::Part;

/// A page.
pub struct Frame<'a> {
    /// Title of the window.
    pub title: &'a str,
    /// Tab that is highlighted in the navigation.
    pub tab: Tab,
    /// URL of the event stream, if the page has one.
    pub events: Option<&'a str>,
    /// User to show; `None` without tokens.
    pub who: Option<&'a Identity>,
    /// Content of the page.
    pub body: Markup,
}

/// A tab of the navigation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tab {
    /// All jobs.
    Jobs,
    /// All workers.
    Workers,
    /// A page outside the tabs.
    None,
}

const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M8 2v5M8 7L3 13M8 7l5 6' \
                    stroke='%232f5aa8' stroke-width='2' fill='none'/%3E%3C/svg%3E";

impl Frame<'_> {
    /// Renders the page.
    pub fn html(&self) -> Html<String> {
        let Frame { title, tab, events, who, body } = self;
        // Buttons are hidden without the role for them; the service would refuse the request anyway.
        let class = who.filter(|who| !who.may(Role::Submit)).map(|_| "reader");
        let current = |of: Tab| (*tab == of).then_some("page");
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
                            a href="/" aria-current=[current(Tab::Jobs)] { "Jobs" }
                            a href="/workers" aria-current=[current(Tab::Workers)] { "Workers" }
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

    /// Renders the page as a response.
    pub fn respond(&self) -> Response {
        self.html().into_response()
    }
}

/// Renders all parts of a page, in order.
pub fn render_parts(parts: &[Part]) -> Markup {
    html! {
        @for Part { id, html } in parts { div.part id=(id) { (PreEscaped(html)) } }
    }
}

/// The login page; `again` after a wrong token.
pub fn login(again: bool) -> Response {
    let body = html! {
        h1 { "Grammaton" }
        @if again { p.bad role="alert" { "This is not a token of this service." } }
        form.login method="post" action="/login" {
            label for="token" { "Token" }
            input #token name="token" type="password" autocomplete="current-password" required autofocus;
            button { "Log in" }
        }
        p.quiet { "Ask the operator of the service, who creates tokens with " code { "grammaton token" } "." }
    };
    Frame { title: "Log in", tab: Tab::None, events: None, who: None, body }.respond()
}
