//! Authentication and authorisation of requests, and security headers of responses.
//!
//! In: every request, before any route. A token identifies the user, in the header `Authorization: Bearer …` or in a cookie that `/login`
//! set. Both are checked at every request ([`Access::admit`]), so a forged cookie is refused, and removing a token from the file takes
//! effect soon.
//!
//! Invariants: a route that is not named in [`needed`] needs the role read. Only POST requests change state, and the browser must
//! confirm that they come from a page of this service. Every response forbids loading, running or framing anything from another
//! origin. Without tokens, the `Host` header must name this machine, which prevents DNS rebinding.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use basics::clock;
use cookie::{Cookie, SameSite};
use fleet::access::{Access, Denied, Identity, Role};
use fleet::connection_limits::ConnectionSlot;
use fleet::revocation::Revocable;
use tokio::sync::Semaphore;
use tower_http::set_header::SetResponseHeaderLayer;

use super::sessions::{LIFETIME, Sessions};
use super::{App, PageError};
use crate::Service;

/// Content security policy of our pages.
pub const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
                          form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Name of the cookie without TLS.
const COOKIE: &str = "grammaton";
/// Name of the cookie with TLS: browsers accept it from this host only, for all paths, through TLS.
const SECURE_COOKIE: &str = "__Host-grammaton";
/// Delay of the response to a wrong token.
const DELAY: Duration = Duration::from_secs(1);
/// Maximum number of delayed responses at the same time; further attempts are refused.
const GUESSES: usize = 8;
/// Maximum time until the head of a response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Authentication of requests.
pub struct Auth {
    access: Access,
    /// Whether the cookie is sent over TLS only.
    secure: bool,
    /// Whether the `Host` header must name this machine.
    is_local: bool,
    sessions: Sessions,
    guesses: Semaphore,
}

impl Auth {
    /// Authentication by `access`; `secure` if the page is served over TLS; `is_local` if it is served on loopback only.
    pub fn new(access: Access, secure: bool, is_local: bool) -> Auth {
        let is_local = is_local && !access.is_guarded();
        Auth { access, secure, is_local, sessions: Sessions::default(), guesses: Semaphore::new(GUESSES) }
    }

    /// The `authorization` header that a request shows, or that its session stands for.
    fn shown_by(&self, headers: &HeaderMap) -> Option<String> {
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let of_session = || {
            let token = self.sessions.token(&number(headers)?, clock::instant())?;
            Some(format!("Bearer {token}"))
        };
        shown.map(str::to_owned).or_else(of_session)
    }

    /// Identity to show in a page; `None` without tokens.
    pub fn shown<'a>(&self, who: &'a Identity) -> Option<&'a Identity> {
        self.access.is_guarded().then_some(who)
    }

    /// Answers a login form with a token.
    pub async fn log_in(
        &self,
        service: &Service,
        peer: SocketAddr,
        place: &ConnectionSlot,
        token: &str,
    ) -> Response {
        let header = format!("Bearer {token}");
        let admitted = place.admit_token(Some(&header), || self.access.admit(Some(&header), Role::Read));
        let (service, detail) = (service.clone(), peer.ip().to_string());
        let note = |who: String, what: &'static str| {
            tokio::task::spawn_blocking(move || service.note(&who, what, &detail))
        };
        match admitted {
            Ok(who) => {
                let _ = note(who.name, "login").await;
                match self.sessions.open(token, clock::instant()) {
                    Ok(number) => go("/", &self.cookie(&number, LIFETIME)),
                    Err(error) => {
                        PageError(StatusCode::INTERNAL_SERVER_ERROR, format!("no session: {error}"))
                            .into_response()
                    }
                }
            }
            Err(denied) => {
                let Ok(_guess) = self.guesses.try_acquire() else {
                    return PageError(
                        StatusCode::TOO_MANY_REQUESTS,
                        "Too many wrong tokens at the same time; try again later.".into(),
                    )
                    .into_response();
                };
                let _ = note("nobody".to_owned(), "login refused").await;
                tokio::time::sleep(DELAY).await;
                match denied {
                    Denied::Missing | Denied::Unknown => Redirect::to("/login?again").into_response(),
                    Denied::TooMany => {
                        PageError(StatusCode::TOO_MANY_REQUESTS, denied.to_string()).into_response()
                    }
                    Denied::Role { .. } => {
                        PageError(StatusCode::FORBIDDEN, denied.to_string()).into_response()
                    }
                }
            }
        }
    }

    /// Ends the session of a browser.
    pub fn log_out(&self, headers: &HeaderMap) -> Response {
        if let Some(number) = number(headers) {
            self.sessions.close(&number);
        }
        go("/login", &self.cookie("", Duration::ZERO))
    }

    /// The cookie of a session: for pages of this service alone, and not for their scripts.
    fn cookie<'a>(&self, number: &'a str, lifetime: Duration) -> Cookie<'a> {
        let name = if self.secure { SECURE_COOKIE } else { COOKIE };
        let max_age = cookie::time::Duration::seconds(lifetime.as_secs() as i64);
        let cookie = Cookie::build((name, number)).http_only(true).same_site(SameSite::Strict).path("/");
        cookie.secure(self.secure).max_age(max_age).build()
    }

    /// Response to a request without the needed role.
    fn refuse(&self, request: &Request, denied: Denied) -> Response {
        let accepts =
            request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        match denied {
            Denied::Missing | Denied::Unknown
                if request.method() == Method::GET && accepts.contains("text/html") =>
            {
                Redirect::to("/login").into_response()
            }
            Denied::Missing | Denied::Unknown => {
                let bearer = [(header::WWW_AUTHENTICATE, "Bearer")];
                (
                    StatusCode::UNAUTHORIZED,
                    bearer,
                    "no valid token; send Authorization: Bearer …, or log in at /login\n",
                )
                    .into_response()
            }
            Denied::TooMany => PageError(StatusCode::TOO_MANY_REQUESTS, denied.to_string()).into_response(),
            Denied::Role { .. } => PageError(StatusCode::FORBIDDEN, denied.to_string()).into_response(),
        }
    }
}

/// Role that a request needs; `None` for public routes.
fn needed(method: &Method, path: &str) -> Option<Role> {
    match path {
        "/health" | "/login" | "/logout" | "/style.css" | "/live.js" => None,
        _ if matches!(*method, Method::GET | Method::HEAD) => Some(Role::Read),
        _ => Some(Role::Submit),
    }
}

/// Security headers of all responses, unless a response sets its own.
pub fn headers() -> [SetResponseHeaderLayer<HeaderValue>; 4] {
    [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With `no-referrer`, browsers would send no origin with forms.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ]
    .map(|(name, value)| SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value)))
}

/// Middleware that passes a request on, or refuses it.
pub async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let auth = &app.auth;
    let is_guarded = needed(request.method(), request.uri().path()).is_some();
    let is_post = !matches!(*request.method(), Method::GET | Method::HEAD);
    let shown = auth.shown_by(request.headers());
    let admitted = match needed(request.method(), request.uri().path()) {
        None => Ok(Identity::anyone("anyone")),
        Some(role) => {
            let admit = || auth.access.admit(shown.as_deref(), role);
            match request.extensions().get::<Arc<ConnectionSlot>>() {
                Some(place) => place.admit_token(shown.as_deref(), admit),
                None => admit(),
            }
        }
    };
    match admitted {
        _ if auth.is_local && !names_this_machine(request.headers()) => {
            let words = "Without tokens, this service answers requests to localhost only.";
            PageError(StatusCode::MISDIRECTED_REQUEST, words.into()).into_response()
        }
        Err(denied) => auth.refuse(&request, denied),
        Ok(_) if is_post && !is_ours(request.headers()) => {
            let words = "This was not sent from a page of this service (by Origin or Sec-Fetch-Site).";
            PageError(StatusCode::FORBIDDEN, words.into()).into_response()
        }
        Ok(who) => {
            if let Some(place) = request.extensions().get::<Arc<ConnectionSlot>>().filter(|_| is_guarded) {
                place.admit(&who.name);
            }
            request.extensions_mut().insert(who);
            let late = |_| (StatusCode::REQUEST_TIMEOUT, "too slow\n").into_response();
            let answer = tokio::time::timeout(TIMEOUT, next.run(request)).await.unwrap_or_else(late);
            // Pages that are watched, and long downloads, end with the token.
            if is_guarded && auth.access.is_guarded() {
                answer.map(|body| {
                    let stream = body.into_data_stream();
                    Body::from_stream(Revocable::new(
                        stream,
                        &auth.access,
                        shown.as_deref(),
                        Role::Read,
                        None,
                    ))
                })
            } else {
                answer
            }
        }
    }
}

/// Redirects to another page, and sets a cookie.
fn go(to: &str, cookie: &Cookie<'_>) -> Response {
    match HeaderValue::try_from(cookie.to_string()) {
        Ok(cookie) => ([(header::SET_COOKIE, cookie)], Redirect::to(to)).into_response(),
        // The value is not valid in a header, so it is not a token.
        Err(_) => Redirect::to("/login?again").into_response(),
    }
}

/// Number of the session in the cookie of a request: the first one, if several have its name.
fn number(headers: &HeaderMap) -> Option<String> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies = texts.flat_map(Cookie::split_parse).flatten();
    cookies
        .find(|cookie| [COOKIE, SECURE_COOKIE].contains(&cookie.name()))
        .map(|cookie| cookie.value().to_owned())
}

/// Whether the browser confirms that a page of this service sent the request.
pub fn is_ours(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    match (text("sec-fetch-site"), text("origin")) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            host.is_some() && host == text("host")
        }
        (None, None) => false,
    }
}

/// Whether the `Host` header names this machine.
pub fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_have_all_their_attributes() {
        let of = |answer: &Response| {
            let cookies = answer.headers().get_all(header::SET_COOKIE).iter();
            cookies.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let auth = |secure| Auth::new(Access::Open, secure, true);
        let log_in = |secure| of(&go("/", &auth(secure).cookie("0a1b", LIFETIME)));
        let rest = "HttpOnly; SameSite=Strict";
        assert_eq!(log_in(false), [format!("grammaton=0a1b; {rest}; Path=/; Max-Age=43200")]);
        assert_eq!(log_in(true), [format!("__Host-grammaton=0a1b; {rest}; Secure; Path=/; Max-Age=43200")]);
        let out = of(&auth(true).log_out(&HeaderMap::new()));
        assert_eq!(out, [format!("__Host-grammaton=; {rest}; Secure; Path=/; Max-Age=0")]);
        assert!(of(&go("/", &Cookie::new(COOKIE, "a\r\nb"))).is_empty(), "a header has one line");
    }

    #[test]
    fn the_number_of_a_cookie_is_read_unchanged() {
        let read = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::COOKIE, HeaderValue::from_str(line).unwrap());
            }
            number(&headers)
        };
        assert_eq!(read(&["other=1; grammaton=a%3D\"=b; more=2"]).unwrap(), "a%3D\"=b");
        assert_eq!(read(&["other=1", "x; =y; grammaton=eve"]).unwrap(), "eve");
        assert_eq!(read(&["grammaton=first; grammaton=second"]).unwrap(), "first");
        for none in ["", "grammaton", "xgrammaton=eve", "Grammaton=eve", "other=grammaton=eve"] {
            assert_eq!(read(&[none]), None, "{none}");
        }
    }
}
