//! The parts of a request's head that decide about it. Pure.

use hyper::header::{self, HeaderMap, HeaderName};
use hyper::{Method, Uri};

/// The head of a request, as far as it matters.
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
    /// Its cookies.
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
            let one = all.next()?.to_str().ok()?.to_owned();
            all.next().is_none().then_some(one)
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
mod tests {
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
