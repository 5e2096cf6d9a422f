//! Pages of the web: `{status, content, url}`.
//!
//! A page is trusted if one of the certificates that come with raymond, or of this machine's, vouches
//! for it. Proxies are those of the environment that the world was given. No cookies are kept.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, NoProxy, Proxy, Response, Url};
use serde_json::{Value, json};

use super::address::masked;
use super::outcome::Trouble;
use super::place::Place;
use super::shared::Shared;

/// How long a page may take, with all that leads to it.
const LONGEST: Duration = Duration::from_mins(1);

/// How large it may be.
const LARGEST: usize = 10 * 1024 * 1024;

/// How many addresses may lead on to another.
const REDIRECTS: usize = 10;

/// Who asks.
const AGENT: &str = concat!("raymond/", env!("CARGO_PKG_VERSION"));

/// Fetches a page. With `allow_failure` there is an answer whatever comes of it: its status is 0 if
/// nobody answered, and its content null if it could not be read.
pub(super) async fn fetch(
    shared: &Shared,
    given: &str,
    allow_failure: bool,
) -> Result<Value, Trouble> {
    let url = check(given)?;
    let _permit = shared.permit().await?;
    let client = shared.client().get_or_try_init(|| client(Arc::clone(&shared.place))).await?;
    let page = shared.unless_stopped(get(client, url)).await?;
    let shown = masked(given);
    match page {
        Err(_) if allow_failure => Ok(json!({"status": 0, "content": null, "url": shown})),
        Err(error) => Err(format!("cannot fetch {shown}: {}", chain(&error)).into()),
        Ok((response, body)) => {
            let status = response.status;
            // One of 300 and more leads on to where no page is.
            if (status >= 300 || body.is_err()) && !allow_failure {
                let why = body.err().unwrap_or_else(|| format!("the server answered {status}"));
                return Err(format!("cannot fetch {shown}: {why}").into());
            }
            Ok(json!({"status": status, "content": body.ok(), "url": response.url}))
        }
    }
}

/// What a page is, but for its content.
struct Head {
    status: u16,
    url: String,
}

async fn get(client: &Client, url: Url) -> Result<(Head, Result<String, String>), reqwest::Error> {
    let response = client.get(url).send().await?;
    let head = Head { status: response.status().as_u16(), url: masked(response.url().as_str()) };
    let body = read(response).await;
    Ok((head, body))
}

/// The text of a page, in the encoding it says it has; UTF-8 if it does not.
async fn read(mut response: Response) -> Result<String, String> {
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    let encoding = kind.and_then(charset).unwrap_or(encoding_rs::UTF_8);
    let mut bytes = Vec::new();
    while let Some(part) = response.chunk().await.map_err(|error| chain(&error))? {
        if bytes.len() + part.len() > LARGEST {
            return Err(format!("the page is larger than {} MiB", LARGEST >> 20));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(encoding.decode(&bytes).0.into_owned())
}

/// The encoding that a content type names.
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

fn check(given: &str) -> Result<Url, String> {
    if given.trim().is_empty() {
        return Err("the url is empty: name a page".to_owned());
    }
    let shown = masked(given);
    let url = Url::parse(given.trim()).map_err(|error| format!("`{shown}` is no url: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{shown}` is no page of the web: give one with http:// or https://"));
    }
    Ok(url)
}

async fn client(place: Arc<Place>) -> Result<Client, Trouble> {
    // Certificates are read from the disk.
    let made = tokio::task::spawn_blocking(move || make_client(&place)).await;
    let made = made.map_err(|error| error.to_string()).and_then(|made| made);
    made.map_err(|why| Trouble::Failed(format!("cannot fetch anything: {why}")))
}

fn make_client(place: &Place) -> Result<Client, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = rustls::crypto::ring::default_provider().into();
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(AGENT)
        .redirect(Policy::limited(REDIRECTS))
        .timeout(LONGEST)
        .no_proxy();
    for proxy in proxies(place)? {
        builder = builder.proxy(proxy);
    }
    builder.build().map_err(|error| chain(&error))
}

/// The proxies that the environment names, each for its scheme before the one for all.
fn proxies(place: &Place) -> Result<Vec<Proxy>, String> {
    let value = |name: &str| {
        let found = place.variable(name).or_else(|| place.variable(&name.to_ascii_uppercase()));
        found.and_then(|value| value.to_str()).filter(|value| !value.is_empty())
    };
    let except = value("no_proxy").and_then(NoProxy::from_string);
    let mut proxies = Vec::new();
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
        let Some(address) = value(name) else { continue };
        let proxy = match name {
            "http_proxy" => Proxy::http(address),
            "https_proxy" => Proxy::https(address),
            _ => Proxy::all(address),
        };
        let proxy = proxy.map_err(|error| {
            format!("`{name}` of the environment names no proxy: {}", chain(&error))
        })?;
        proxies.push(proxy.no_proxy(except.clone()));
    }
    Ok(proxies)
}

/// An error with what is behind it.
fn chain(error: &reqwest::Error) -> String {
    let mut said = Vec::new();
    let mut next: Option<&dyn Error> = Some(error);
    while let Some(error) = next {
        said.push(error.to_string());
        next = error.source();
    }
    masked(&said.join(": "))
}
