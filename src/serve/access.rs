//! The decisions who may ask and from where: token, cookie, host, origin. Pure.
//!
//! The first address has a token, which is exchanged for a cookie at once. A cookie is a proof of the user's key, so
//! nothing is stored, and a page stays open while the server is started again. It is bound to the runs, to the address
//! and to a time.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{self, HeaderMap, HeaderName};
use hyper::{Method, Uri};
use sha2::{Digest, Sha256};

use crate::domain::time::Timestamp;
use crate::proof::ProofKey;

/// The time for which a cookie is taken, in milliseconds.
pub const COOKIE_LIFETIME_MS: u64 = 24 * 60 * 60 * 1000;

/// The purpose of the proofs in cookies.
const PURPOSE: &str = "cookie of the page";

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessRefusal {
    /// It has neither a cookie nor a token that counts.
    #[error("open the address that `raymond serve` prints: this browser has no key, or an old one")]
    NoKey,
    /// It was sent to a name that is not this server's, as when a foreign name leads here.
    #[error("this server answers only under its own address")]
    Host,
    /// It was sent by a page of another server.
    #[error("requests from other pages are not accepted")]
    Origin,
    /// It would change something and has no JSON.
    #[error(
        "a request that changes something needs a JSON body and the header Content-Type: application/json"
    )]
    ContentType,
}

/// The checks of one server.
#[derive(Debug, Clone)]
pub struct AccessRules {
    key: ProofKey,
    token: AccessToken,
    address: SocketAddr,
    /// The directory of the runs, for which a cookie is made.
    runs: String,
}

/// The secret of the first address. It is never shown by `Debug`.
#[derive(Clone)]
pub struct AccessToken(String);

impl std::fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccessToken")
    }
}

impl AccessToken {
    /// Takes a secret that nobody can guess.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Returns whether a text is the secret, in a time that does not depend on where they differ.
    fn is(&self, text: &str) -> bool {
        let (secret, other) = (Sha256::digest(&self.0), Sha256::digest(text));
        secret.iter().zip(other.iter()).fold(0, |all, (byte, other)| all | (byte ^ other)) == 0
    }
}

impl AccessRules {
    /// Returns the checks of a server at this address.
    pub fn new(key: &ProofKey, token: AccessToken, address: SocketAddr, runs: String) -> Self {
        Self { key: key.derive(PURPOSE), token, address, runs }
    }

    /// Returns the name of the cookie. Cookies know no ports, so the port is in the name.
    pub fn cookie_name(&self) -> String {
        format!("raymond-{}", self.address.port())
    }

    /// Returns the value of the header that gives a browser its cookie.
    pub fn cookie(&self, now: Timestamp) -> String {
        let until = now.plus(COOKIE_LIFETIME_MS).0;
        let proof = self.key.proof(PURPOSE, self.bound_to(until).as_bytes());
        format!(
            "{}={until}.{proof}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict",
            self.cookie_name(),
            COOKIE_LIFETIME_MS / 1000
        )
    }

    /// Returns whether a text is the token of the first address.
    pub fn is_token(&self, text: &str) -> bool {
        self.token.is(text)
    }

    /// Checks the address that a request was sent to, and the page that sent it.
    ///
    /// # Errors
    /// [`AccessRefusal::Host`], [`AccessRefusal::Origin`], [`AccessRefusal::ContentType`].
    pub fn check_source(&self, head: &RequestHead) -> Result<(), AccessRefusal> {
        let host = head.host.as_deref().filter(|host| self.is_named(host));
        let host = host.ok_or(AccessRefusal::Host)?;
        let is_foreign = match &head.origin {
            Some(origin) => *origin != format!("http://{host}"),
            // A browser names the origin of each request that changes something.
            None => head.changes && head.bearer.is_none(),
        };
        let is_from_elsewhere = match head.fetch_site.as_deref() {
            // A link of another page may lead to a page here, but its scripts and forms reach nothing.
            Some("cross-site" | "same-site") => head.changes || head.is_api,
            _ => false,
        };
        if is_foreign || is_from_elsewhere {
            return Err(AccessRefusal::Origin);
        }
        let is_json =
            |kind: &str| kind.split(';').next().unwrap_or_default().trim() == "application/json";
        if head.changes && !head.content_type.as_deref().is_some_and(is_json) {
            return Err(AccessRefusal::ContentType);
        }
        Ok(())
    }

    /// Checks that a request has the cookie, or the token as its bearer.
    ///
    /// # Errors
    /// [`AccessRefusal::NoKey`].
    pub fn check_key(&self, head: &RequestHead, now: Timestamp) -> Result<(), AccessRefusal> {
        let name = self.cookie_name();
        let mut cookies = head.cookies.iter().filter(|(cookie, _)| *cookie == name);
        let has_cookie = cookies.any(|(_, value)| self.is_cookie(value, now));
        let has_token = head.bearer.as_deref().is_some_and(|token| self.is_token(token));
        (has_cookie || has_token).then_some(()).ok_or(AccessRefusal::NoKey)
    }

    fn is_cookie(&self, value: &str, now: Timestamp) -> bool {
        let Some((until, proof)) = value.split_once('.') else { return false };
        let Ok(until) = until.parse::<u64>() else { return false };
        self.key.holds(PURPOSE, self.bound_to(until).as_bytes(), proof) && now.0 < until
    }

    fn bound_to(&self, until: u64) -> String {
        format!("{until}\n{}\n{}", self.address, self.runs)
    }

    /// Returns whether a host is this server's: `localhost` or an address, with the port. A name could be made to lead
    /// here, an address cannot.
    fn is_named(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (host, Some(80)),
        };
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_address = match name.parse::<IpAddr>() {
            Ok(named) if self.address.ip().is_loopback() => named == self.address.ip(),
            Ok(named) => self.address.ip().is_unspecified() || named == self.address.ip(),
            Err(_) => name.eq_ignore_ascii_case("localhost") && self.is_local(),
        };
        is_address && port == Some(self.address.port())
    }

    fn is_local(&self) -> bool {
        self.address.ip().is_loopback() || self.address.ip().is_unspecified()
    }
}

/// The parts of a request's head that decide about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestHead {
    /// The host that it was sent to.
    pub host: Option<String>,
    /// The origin of the page that sent it.
    pub origin: Option<String>,
    /// The relation of that page, as browsers say it.
    pub fetch_site: Option<String>,
    /// The type of its body.
    pub content_type: Option<String>,
    /// The token in `Authorization: Bearer`.
    pub bearer: Option<String>,
    /// The names and values in its `Cookie` header. Empty without that header, or with several.
    pub cookies: Vec<(String, String)>,
    /// The position after which a stream continues.
    pub last_event_id: Option<String>,
    /// True if it asks for data and not for a page.
    pub is_api: bool,
    /// True if it changes something.
    pub changes: bool,
}

impl RequestHead {
    /// Reads a head. A header that is there twice counts as absent.
    pub fn read(method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let text = |name: HeaderName| {
            let mut all = headers.get_all(name).iter();
            let first = all.next()?.to_str().ok()?.to_owned();
            all.next().is_none().then_some(first)
        };
        let bearer = text(header::AUTHORIZATION);
        let cookies = text(header::COOKIE).unwrap_or_default();
        let pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        Self {
            host: text(header::HOST),
            origin: text(header::ORIGIN),
            fetch_site: text(HeaderName::from_static("sec-fetch-site")),
            content_type: text(header::CONTENT_TYPE),
            bearer: bearer.and_then(|value| value.strip_prefix("Bearer ").map(str::to_owned)),
            cookies: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            last_event_id: text(HeaderName::from_static("last-event-id")),
            is_api: uri.path().starts_with("/api/"),
            changes: !matches!(*method, Method::GET | Method::HEAD),
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod request_head_tests {
    use super::*;

    fn head(lines: &[(&str, &str)]) -> RequestHead {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            headers.append(name, value.parse().expect("a value"));
        }
        RequestHead::read(&Method::POST, &Uri::from_static("/api/runs"), &headers)
    }

    #[test]
    fn header_that_is_there_twice_counts_as_absent() {
        assert_eq!(head(&[("host", "a:1")]).host.as_deref(), Some("a:1"));
        assert_eq!(head(&[("host", "a:1"), ("host", "b:1")]).host, None);
        let found = head(&[("cookie", "a=1; b=2=3;c"), ("authorization", "Bearer t")]);
        assert_eq!(found.cookies, [("a".into(), "1".into()), ("b".into(), "2=3".into())]);
        assert_eq!(found.bearer.as_deref(), Some("t"));
        assert!(found.is_api && found.changes);
        assert_eq!(head(&[("authorization", "Basic t")]).bearer, None);
    }
}
