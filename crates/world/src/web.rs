//! Fetches pages of the web, and checks the addresses of pages and repositories.
//!
//! A page is trusted if a certificate that comes with raymond, or one of this machine, vouches for it. The environment
//! of the workspace names the proxies. No cookies are kept. The allowed addresses are described in
//! [`gate`](super::gate).

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, NoProxy, Proxy, Response, Url};

use crate::files::Workspace;
use crate::gate::{AddressGate, RefusedAddress};
use crate::outcome::OperationError;

/// The longest time that a page may take, with its redirects.
const PAGE_TIMEOUT: Duration = Duration::from_mins(1);

/// The largest page, in bytes.
const MAX_PAGE_BYTES: usize = 10 * 1024 * 1024;

/// The maximum number of redirects.
const REDIRECTS: usize = 10;

/// The user agent of requests.
const AGENT: &str = concat!("raymond/", env!("CARGO_PKG_VERSION"));

/// The status and the URL of a page.
pub(super) struct ResponseHead {
    pub(super) status: u16,
    pub(super) url: String,
}

/// The reason why a request has no answer.
pub(super) enum GetError {
    /// The address is not fetched from.
    Refused(RefusedAddress),
    /// The request failed.
    Failed(String),
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl From<reqwest::Error> for GetError {
    fn from(error: reqwest::Error) -> Self {
        match find_refusal(&error) {
            Some(refused) => Self::Refused(refused.clone()),
            None => Self::Failed(chain(&error)),
        }
    }
}

/// Requests a page, and follows its redirects. Each URL is judged before it is requested.
pub(super) async fn get(
    web: &WebClient,
    mut url: Url,
) -> Result<(ResponseHead, Result<String, String>), GetError> {
    for _ in 0..=REDIRECTS {
        let proxied = web.schemes_by_proxy.iter().any(|&scheme| scheme == url.scheme());
        web.gate.check(&url, proxied).await.map_err(GetError::Refused)?;
        let response = web.client.get(url.clone()).send().await?;
        if let Some(next) = next(&response) {
            url = next.map_err(GetError::Failed)?;
            continue;
        }
        let head = ResponseHead {
            status: response.status().as_u16(),
            url: masked(response.url().as_str()),
        };
        return Ok((head, read(response).await));
    }
    Err(GetError::Failed(format!("too many redirects: more than {REDIRECTS}")))
}

/// Returns the target of a redirect; `None` for any other answer.
fn next(response: &Response) -> Option<Result<Url, String>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get("location")?;
    let joined = location.to_str().ok().and_then(|location| response.url().join(location).ok());
    let from = masked(response.url().as_str());
    Some(match joined {
        None => Err(format!("{from} leads to something that is not a url")),
        Some(next) if matches!(next.scheme(), "http" | "https") => Ok(next),
        Some(next) => {
            Err(format!("{from} leads to `{}`, which is not a web page", masked(next.as_str())))
        }
    })
}

/// Returns the refusal that caused an error, if one did.
fn find_refusal(error: &reqwest::Error) -> Option<&RefusedAddress> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(refused) = error.downcast_ref::<RefusedAddress>() {
            return Some(refused);
        }
        next = error.source();
    }
    None
}

/// Returns the text of a page, decoded by the encoding that it names, or else as UTF-8.
async fn read(mut response: Response) -> Result<String, String> {
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    let encoding = kind.and_then(charset).unwrap_or(encoding_rs::UTF_8);
    let mut bytes = Vec::new();
    while let Some(part) = response.chunk().await.map_err(|error| chain(&error))? {
        if bytes.len() + part.len() > MAX_PAGE_BYTES {
            return Err(format!("the page is larger than {} MiB", MAX_PAGE_BYTES >> 20));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(encoding.decode(&bytes).0.into_owned())
}

/// Returns the encoding that a content type names.
fn charset(kind: &str) -> Option<&'static encoding_rs::Encoding> {
    kind.split(';')
        .skip(1)
        .find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let label = value.trim().trim_matches('"');
            name.trim().eq_ignore_ascii_case("charset").then_some(label.as_bytes())
        })
        .and_then(encoding_rs::Encoding::for_label)
}

pub(super) fn check_url(given: &str) -> Result<Url, String> {
    if given.trim().is_empty() {
        return Err("the url is empty: name a page".to_owned());
    }
    let shown = masked(given);
    let url =
        Url::parse(given.trim()).map_err(|error| format!("`{shown}` is not a url: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{shown}` is not a web page: give a url with http:// or https://"));
    }
    Ok(url)
}

/// The client for pages.
#[derive(Debug)]
pub(super) struct WebClient {
    client: Client,
    gate: AddressGate,
    /// The schemes of URLs that a proxy may serve.
    schemes_by_proxy: Vec<&'static str>,
}

pub(super) async fn client(place: Arc<Workspace>) -> Result<WebClient, OperationError> {
    // Certificates are read from the disk.
    let made = tokio::task::spawn_blocking(move || make_client(&place)).await;
    let made = made.map_err(|error| error.to_string()).and_then(|made| made);
    made.map_err(|why| OperationError::Failed(format!("cannot fetch anything: {why}")))
}

fn make_client(place: &Workspace) -> Result<WebClient, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = rustls::crypto::ring::default_provider().into();
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let proxies = proxies(place)?;
    let hosts = proxies.iter().filter_map(|proxy| proxy.host.clone()).collect();
    let gate = AddressGate::new(&place.allowed_addresses, place.lookup.clone(), hosts);
    let schemes_by_proxy = proxies.iter().flat_map(|proxy| proxy.schemes).copied().collect();
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(AGENT)
        .redirect(Policy::none())
        .dns_resolver(Arc::new(gate.clone()))
        .timeout(PAGE_TIMEOUT)
        .no_proxy();
    for proxy in proxies {
        builder = builder.proxy(proxy.proxy);
    }
    let client = builder.build().map_err(|error| chain(&error))?;
    Ok(WebClient { client, gate, schemes_by_proxy })
}

/// A proxy that the environment names.
struct NamedProxy {
    proxy: Proxy,
    host: Option<String>,
    schemes: &'static [&'static str],
}

/// Returns the proxies that the environment names, each for its scheme before the one for all.
fn proxies(place: &Workspace) -> Result<Vec<NamedProxy>, String> {
    let value = |name: &str| {
        let found = place.variable(name).or_else(|| place.variable(&name.to_ascii_uppercase()));
        found.and_then(|value| value.to_str()).filter(|value| !value.is_empty())
    };
    let except = value("no_proxy").and_then(NoProxy::from_string);
    let mut proxies = Vec::new();
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
        let Some(address) = value(name) else { continue };
        let (proxy, schemes): (_, &'static [_]) = match name {
            "http_proxy" => (Proxy::http(address), &["http"]),
            "https_proxy" => (Proxy::https(address), &["https"]),
            _ => (Proxy::all(address), &["http", "https"]),
        };
        let proxy = proxy.map_err(|error| {
            format!("`{name}` of the environment names no proxy: {}", chain(&error))
        })?;
        let full = if address.contains("://") { address } else { &format!("http://{address}") };
        let host = Url::parse(full).ok().and_then(|url| Some(url.host_str()?.to_owned()));
        proxies.push(NamedProxy { proxy: proxy.no_proxy(except.clone()), host, schemes });
    }
    Ok(proxies)
}

/// Returns the message of an error with its causes.
fn chain(error: &reqwest::Error) -> String {
    let mut messages = Vec::new();
    let mut next: Option<&dyn Error> = Some(error);
    while let Some(error) = next {
        messages.push(error.to_string());
        next = error.source();
    }
    masked(&messages.join(": "))
}

// Addresses of pages and repositories: checks and display. Pure.

/// Returns a text without the names and passwords in its addresses.
pub(super) fn masked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || "/?#'\"`".contains(c));
        let host = &after[..end.unwrap_or(after.len())];
        rest = after;
        if let Some(at) = host.rfind('@') {
            shown.push_str("***");
            rest = &after[at..];
        }
    }
    shown.push_str(rest);
    shown
}

/// Refuses a URL that git would take for an option, or for a program to run.
pub(super) fn check_remote(url: &str) -> Result<(), String> {
    let shown = masked(url);
    if url.trim().is_empty() {
        return Err("the url is empty: name a repository".to_owned());
    }
    if url.starts_with('-') || url.contains(char::is_control) {
        return Err(format!("the url {shown:?} is none of a repository"));
    }
    // An address such as `ext::sh -c …` names a program that acts as the remote.
    if let Some((helper, _)) = url.split_once("::")
        && helper.chars().all(|c| c.is_ascii_alphanumeric() || "+.-_".contains(c))
    {
        return Err(format!(
            "the url `{shown}` names the helper `{helper}`, which raymond does not run: give a url \
             that begins with https:// or ssh://"
        ));
    }
    Ok(())
}

/// Refuses a branch that git would take for an option.
pub(super) fn check_branch(branch: &str) -> Result<(), String> {
    if branch.trim().is_empty() || branch.starts_with('-') || branch.contains(char::is_control) {
        return Err(format!("{branch:?} is not a branch name"));
    }
    Ok(())
}

#[cfg(test)]
mod address_tests {
    use super::*;

    #[test]
    fn credentials_in_addresses_are_masked() {
        assert_eq!(masked("https://me:secret@x.org/r?a=b@c"), "https://***@x.org/r?a=b@c");
        assert_eq!(
            masked("fatal: 'https://t0ken@x/y' and ssh://git@h:22/z, http://plain/@v"),
            "fatal: 'https://***@x/y' and ssh://***@h:22/z, http://plain/@v"
        );
        assert_eq!(masked("git@github.com:a/b.git"), "git@github.com:a/b.git");
        assert_eq!(masked("http://a@b@c"), "http://***@c");
    }

    #[test]
    fn invalid_remote_or_branch_is_refused() {
        for good in ["https://x/y.git", "git@h:a/b", "/srv/git/x", "file:///x", "http://[::1]/x"] {
            assert_eq!(check_remote(good), Ok(()), "{good}");
        }
        for bad in ["", " ", "--upload-pack=x", "ext::sh -c x", "fd::3", "https://x/\ny"] {
            assert!(check_remote(bad).is_err(), "{bad}");
        }
        assert!(check_branch("--x").is_err() && check_branch("").is_err());
        assert_eq!(check_branch("release/1.0"), Ok(()));
    }
}
