//! The HTTP client for the server, and the thread that drives it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{io, thread};

use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::Url;
use reqwest::redirect::Policy;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::engine::restate::failure::address_error;
use crate::engine::{EngineAddress, EngineError};

/// The time for a new connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// The thread that drives the connections, until it is dropped. Callers wait on their own threads.
#[derive(Debug)]
pub(super) struct ClientThread {
    pub(super) handle: Handle,
    /// The thread ends when this is dropped.
    _stop: oneshot::Sender<()>,
}

impl ClientThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// The error of the system if it has no thread or no descriptor left.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        thread::Builder::new().name("restate".to_owned()).spawn(move || {
            // An error says that the sender was dropped, which is the only message.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, _stop: stop })
    }
}

/// Returns a client that asks the server itself: no proxy stands between, and no redirect is followed.
///
/// # Errors
/// A text that says why there is no client.
pub(super) fn client() -> Result<reqwest::Client, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = rustls::crypto::ring::default_provider().into();
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .connect_timeout(CONNECT_LIMIT)
        .tcp_nodelay(true)
        .no_proxy()
        .build()
        .map_err(|error| error.to_string())
}

/// The most that the clocks may differ. The server says its time in whole seconds, and a lease takes six.
const MOST: Duration = Duration::from_secs(3);

/// Returns why the clock of this machine does not fit to the date of an answer; `None` if it does, or there is none.
pub(super) fn difference(date: &str, now: SystemTime) -> Option<String> {
    let server = DateTimeParser::new().parse_timestamp(date).ok()?;
    let server = UNIX_EPOCH.checked_add(Duration::try_from(server.as_duration()).ok()?)?;
    let (by, way) = match now.duration_since(server) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    (by > MOST).then(|| {
        format!(
            "the clock of this machine is {} s {way} that of the server, so leases would run out at the wrong time; have both set by the network",
            by.as_secs()
        )
    })
}

/// The port of the server's ingress, unless the address names one.
const INGRESS_PORT: u16 = 8080;
/// The port of the server's admin interface on the same machine, unless the address says where it is.
const ADMIN_PORT: u16 = 9070;

/// The settings of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RestateSettings {
    /// The address of the ingress, for calls.
    pub(super) ingress: Url,
    /// The address of the admin interface, for deployments.
    pub(super) admin: Url,
}

impl RestateSettings {
    /// Reads an address.
    ///
    /// # Errors
    /// [`EngineError::Address`] if it has a parameter that there is not, or a value that is none.
    pub(super) fn read(address: &EngineAddress) -> Result<Self, EngineError> {
        let wrong = |why: &str| address_error(address, why);
        let rest = address.url().split_once("://").map_or("", |(_, rest)| rest);
        let given = Url::parse(&format!("http://{rest}"));
        let given = given.map_err(|error| wrong(&format!("it cannot be read: {error}")))?;
        if !matches!(given.path(), "" | "/") {
            return Err(wrong("it has a path; a Restate server has none"));
        }
        let (mut is_encrypted, mut admin) = (false, None);
        for (name, value) in given.query_pairs() {
            match (&*name, &*value) {
                ("tls", "true") => is_encrypted = true,
                ("tls", "false") => is_encrypted = false,
                ("tls", _) => return Err(wrong("tls is none of true, false")),
                ("admin", url) => admin = Some(admin_url(url).map_err(|why| wrong(&why))?),
                _ => {
                    return Err(wrong(
                        "one of its parameters is unknown; the parameters are admin, tls",
                    ));
                }
            }
        }
        let scheme = if is_encrypted { "https" } else { "http" };
        let at = |port: u16| {
            let mut url = given.clone();
            url.set_query(None);
            url.set_fragment(None);
            url.set_path("/");
            // A URL of http takes the port of http for none, which is how one writes a proxy's.
            let is_set = url.set_port(Some(port)).is_ok() && url.set_scheme(scheme).is_ok();
            if is_set { Ok(url) } else { Err(wrong("it names no machine")) }
        };
        let port = port_of(rest).unwrap_or(INGRESS_PORT);
        Ok(Self { ingress: at(port)?, admin: admin.map_or_else(|| at(ADMIN_PORT), Ok)? })
    }
}

/// Returns the port that stands in an address, also if it is the usual one of HTTP.
fn port_of(rest: &str) -> Option<u16> {
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
    host.rsplit_once(':').and_then(|(_, port)| port.parse().ok())
}

fn admin_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("admin is not a URL: {error}"))?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() {
        Ok(url)
    } else {
        Err("admin is not an http or https URL".to_owned())
    }
}

#[cfg(test)]
mod clock_tests {
    use super::*;

    #[test]
    fn clocks_that_differ_are_told() {
        let date = "Thu, 26 Nov 2026 14:49:42 GMT";
        let at = |seconds: i64| {
            let time = UNIX_EPOCH + Duration::from_secs(1_795_704_582);
            match u64::try_from(seconds) {
                Ok(later) => time + Duration::from_secs(later),
                Err(_) => time - Duration::from_secs(seconds.unsigned_abs()),
            }
        };
        for seconds in [-3, 0, 3] {
            assert_eq!(difference(date, at(seconds)), None, "{seconds}");
        }
        let told = |seconds| difference(date, at(seconds)).expect("a difference");
        assert!(told(60).contains("60 s ahead of that of the server"), "{}", told(60));
        assert!(told(-61).contains("61 s behind that of the server"), "{}", told(-61));
        assert_eq!(difference("yesterday", at(0)), None);
    }
}

#[cfg(test)]
mod settings_tests {
    use super::*;

    fn read(url: &str) -> Result<(String, String), String> {
        let address = EngineAddress::parse(url).expect("an address");
        let settings = RestateSettings::read(&address).map_err(|error| error.to_string())?;
        Ok((settings.ingress.to_string(), settings.admin.to_string()))
    }

    #[test]
    fn addresses_name_the_ingress_and_the_admin_interface() {
        for (url, ingress, admin) in [
            ("restate://db", "http://db:8080/", "http://db:9070/"),
            ("restate://db:80/", "http://db/", "http://db:9070/"),
            ("restate://[::1]:8081", "http://[::1]:8081/", "http://[::1]:9070/"),
            ("restate://db:443?tls=true", "https://db/", "https://db:9070/"),
            ("restate://db?admin=http://x:1/a", "http://db:8080/", "http://x:1/a"),
            ("restate://u:p@db", "http://u:p@db:8080/", "http://u:p@db:9070/"),
        ] {
            assert_eq!(read(url), Ok((ingress.to_owned(), admin.to_owned())), "{url}");
        }
    }

    #[test]
    fn wrong_parameters_are_told() {
        for (url, why) in [
            ("restate://db?tsl=true", "the parameters are admin, tls"),
            ("restate://db?tls=yes", "none of true, false"),
            ("restate://db?admin=db:9070", "not an http or https URL"),
            ("restate://db/work", "it has a path"),
        ] {
            let error = read(url).expect_err("a wrong address");
            assert!(error.contains(why), "{error}");
        }
    }
}
