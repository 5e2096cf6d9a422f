//! The settings of a connection, as an address gives them, and TLS to the server.
//!
//! The address is that of libpq, but for TLS: without `sslmode`, a connection to another machine must be encrypted, and
//! where there is TLS, the certificate is verified. `require`, `verify-ca` and `verify-full` mean the same.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

use crate::client::{tls, trusted_roots};
use crate::{EngineAddress, EngineError};
use raymond_model::percent::percent_decoded;

/// The time for one address of a server: the next one is tried then.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// The time after which an idle connection is probed, between two probes, and how many may be lost.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_RETRIES: u32 = 2;
/// The time for which the other machine may leave sent bytes unacknowledged.
const UNACKNOWLEDGED_LIMIT: Duration = Duration::from_secs(8);

/// The parameters that an address may have.
const PARAMETERS: [&str; 15] = [
    "user",
    "password",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "sslmode",
    "sslrootcert",
    "sslnegotiation",
    "channel_binding",
    "target_session_attrs",
    "load_balance_hosts",
    "connect_timeout",
    "application_name",
    "options",
];

/// The settings of a connection.
#[derive(Debug, Clone)]
pub(super) struct PostgresSettings {
    /// The configuration of the client. Its `Debug` does not show the password.
    pub(super) config: Config,
    /// TLS, if there may be any.
    pub(super) tls: Tls,
}

impl PostgresSettings {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`EngineError::Address`]. Its text has no part of the address in which a password can be.
    pub(super) fn read(address: &EngineAddress) -> Result<Self, EngineError> {
        let wrong = |why: String| EngineError::Address { address: address.to_string(), why };
        let (url, parameters) = Parameters::take(address.url()).map_err(wrong)?;
        let mut config: Config = url.parse().map_err(|error| wrong(shown(&error)))?;
        let servers = config.get_hosts().len().max(config.get_hostaddrs().len());
        if config.get_ports().len() > 1 && config.get_ports().len() != servers {
            return Err(wrong(
                "it names the port of a machine twice; write it behind the machine".to_owned(),
            ));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_LIMIT);
        }
        if config.get_application_name().is_none() {
            config.application_name("raymond");
        }
        config
            .keepalives(true)
            .keepalives_idle(KEEPALIVE_IDLE)
            .keepalives_interval(KEEPALIVE_INTERVAL)
            .keepalives_retries(KEEPALIVE_RETRIES)
            .tcp_user_timeout(UNACKNOWLEDGED_LIMIT);
        let mode = match parameters.mode.as_deref() {
            None if is_this_machine(&config) => SslMode::Disable,
            None | Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
            Some("disable") => SslMode::Disable,
            Some("prefer") => SslMode::Prefer,
            Some(_) => {
                let why = "its sslmode is none of disable, prefer, require, verify-full";
                return Err(wrong(why.to_owned()));
            }
        };
        config.ssl_mode(mode);
        let tls = match mode {
            SslMode::Disable => Tls::none(),
            _ => Tls::verified(parameters.authorities.as_deref()).map_err(wrong)?,
        };
        Ok(Self { config, tls })
    }
}

/// The parameters of an address that the client does not take as they are.
#[derive(Debug, Default)]
struct Parameters {
    mode: Option<String>,
    authorities: Option<PathBuf>,
}

impl Parameters {
    /// Takes them out of an address; returns the rest of it.
    fn take(url: &str) -> Result<(String, Self), String> {
        let mut parameters = Self::default();
        let (_, rest) = url.split_once("://").unwrap_or(("", url));
        // A `?` before the `@` belongs to the password.
        let place = rest.find('@').map_or(0, |at| at + 1);
        let (base, query) = match rest[place..].split_once('?') {
            Some((end, query)) => (&rest[..place + end.len()], query),
            None => (rest, ""),
        };
        let mut kept = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or("one of its parameters has no `=` and value")?;
            match name {
                "sslmode" => parameters.mode = Some(value.to_owned()),
                "sslrootcert" => {
                    let file = percent_decoded(value);
                    let file = file.ok_or("its sslrootcert is not percent-encoded UTF-8")?;
                    parameters.authorities = Some(file.into());
                }
                name if PARAMETERS.contains(&name) => kept.push(pair),
                _ => {
                    let known = PARAMETERS.join(", ");
                    return Err(format!(
                        "one of its parameters is unknown; the parameters are {known}"
                    ));
                }
            }
        }
        let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
        Ok((format!("postgres://{base}{query}"), parameters))
    }
}

/// Returns what is wrong with an address. The library's text may contain a part of the address, so it is shown only if
/// it names a parameter.
fn shown(error: &tokio_postgres::Error) -> String {
    let named = std::error::Error::source(error)
        .map(ToString::to_string)
        .filter(|why| why.starts_with("invalid value for option"));
    named.unwrap_or_else(|| {
        "a part of it cannot be read; write special characters of the password percent-encoded, such as %40 for @"
            .to_owned()
    })
}

/// Returns whether all servers of an address are on this machine.
fn is_this_machine(config: &Config) -> bool {
    let is_loopback = |host: &str| {
        host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
    };
    let hosts = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => is_loopback(name),
        #[cfg(unix)]
        Host::Unix(_) => true,
    });
    hosts && config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback)
}

// TLS to the server: its certificate is verified against the roots of the machine and those of Mozilla, or one file.

/// Makes TLS connections; `None` if the connection is to be plain.
#[derive(Debug, Clone)]
pub(super) struct Tls(Option<Arc<ClientConfig>>);

impl Tls {
    /// Returns the TLS of a plain connection.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Returns TLS that trusts the authorities of a PEM file; without one, those of the machine and Mozilla's.
    ///
    /// # Errors
    /// A text that says what is wrong with the file.
    pub(super) fn verified(authorities: Option<&Path>) -> Result<Self, String> {
        let roots = if let Some(file) = authorities {
            let certificates = read_certificates(file)
                .map_err(|why| format!("sslrootcert {}: {why}", file.display()))?;
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(certificates);
            roots
        } else {
            trusted_roots()
        };
        Ok(Self(Some(Arc::new(tls(roots)?))))
    }
}

fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = raymond_store::plain_file::text(file).map_err(|error| error.to_string())?;
    let certificates = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| error.to_string())?;
    if certificates.is_empty() {
        return Err("it contains no certificate".to_owned());
    }
    Ok(certificates)
}

/// A TLS connection that is to be made to a server.
pub(super) struct Handshake {
    config: Option<Arc<ClientConfig>>,
    server: String,
}

/// An encrypted connection.
pub(super) struct Encrypted<S>(tokio_rustls::client::TlsStream<S>);

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, server: &str) -> io::Result<Handshake> {
        Ok(Handshake { config: self.0.clone(), server: server.to_owned() })
    }
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let config = self.config.ok_or(io::ErrorKind::Unsupported)?;
            let server = ServerName::try_from(self.server).map_err(io::Error::other)?;
            let connector = tokio_rustls::TlsConnector::from(config);
            Ok(Encrypted(connector.connect(server, stream).await?))
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    /// Returns none: the certificate is verified, so the name of the server is bound to the connection already.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<PostgresSettings, EngineError> {
        PostgresSettings::read(&EngineAddress::parse(url).expect("an address"))
    }

    #[test]
    fn other_machines_are_asked_over_tls_unless_address_says_otherwise() {
        for (url, mode) in [
            ("postgres://ray@localhost/work", SslMode::Disable),
            ("postgres://ray@127.0.0.1:5433/work", SslMode::Disable),
            ("postgres://ray@[::1]/work", SslMode::Disable),
            ("postgres:///work?host=/run/postgresql", SslMode::Disable),
            ("postgres://ray@localhost,db.example/work", SslMode::Require),
            ("postgres://ray@localhost/work?hostaddr=10.0.0.7", SslMode::Require),
            ("POSTGRESQL://ray@db.example/work", SslMode::Require),
            ("postgres://ray@db.example/work?sslmode=disable", SslMode::Disable),
            ("postgres://ray@db.example/work?sslmode=prefer", SslMode::Prefer),
            ("postgres://ray@localhost/work?sslmode=require", SslMode::Require),
            ("postgres://ray@localhost/work?sslmode=verify-full", SslMode::Require),
        ] {
            assert_eq!(read(url).expect(url).config.get_ssl_mode(), mode, "{url}");
        }
    }

    #[test]
    fn parameters_are_read() {
        let settings = read("postgres://ray:a%40b@db/work?sslmode=disable&connect_timeout=7");
        let config = settings.expect("settings").config;
        assert_eq!(config.get_password(), Some("a@b".as_bytes()));
        assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(7)));
        assert_eq!(config.get_dbname(), Some("work"));
    }

    #[test]
    fn wrong_addresses_are_reported_without_password() {
        for (url, why) in [
            ("postgres://ray:s3cret@db:port/work", "invalid value for option `port`"),
            ("postgres://ray:s3cret@db/work?port=x", "invalid value for option `port`"),
            ("postgres://ray:s3cret@db/work?port=99", "names the port of a machine twice"),
            ("postgres://ray:s3cret@db/work?sslmode=maybe", "sslmode is none of disable"),
            ("postgres://ray:s3cret@db/work?pasword=s3cret", "the parameters are user, password"),
            ("postgres://ray:s3cret@db/work?sslrootcert=/no/file", "sslrootcert /no/file: "),
            ("postgres://ray:s3cret@db/work?sslrootcert=/no%20file", "sslrootcert /no file: "),
            ("postgres://ray:s3cret@db/work?sslrootcert=%2", "is not percent-encoded UTF-8"),
            ("postgres://ray:s3cret@db/work?sslrootcert=%ff", "is not percent-encoded UTF-8"),
            ("postgres://ray:%ff@db%ff/work", "cannot be read"),
        ] {
            let error = read(url).expect_err(url).to_string();
            assert!(error.contains(why), "{error}");
            assert!(!error.contains("s3cret") && !error.contains('\n'), "{error}");
        }
    }
}
