//! The telemetry configuration: `--otlp` and OpenTelemetry's own variables.
//!
//! Telemetry is off unless it is asked for: by the option, by a variable that names an endpoint, or by
//! `OTEL_TRACES_EXPORTER=otlp` (or `…METRICS…`), which means the collector of this machine. The option takes
//! precedence over variables, but `OTEL_SDK_DISABLED=true` and `OTEL_TRACES_EXPORTER=none` always hold, so that
//! the administrator of a machine has the last word.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;

/// The default address of the collector.
const HERE: &str = "http://localhost:4318";

/// The kinds of data to send, and their endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// The endpoint of the spans.
    pub(super) traces: Option<CollectorEndpoint>,
    /// The endpoint of the metrics.
    pub(super) metrics: Option<CollectorEndpoint>,
    /// The name of the service, if it is not the program's.
    pub(super) service: Option<String>,
}

/// The endpoint of one kind of data. Its debug output holds no secrets.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct CollectorEndpoint {
    pub(super) url: String,
    pub(super) timeout: Duration,
    /// The file of the certificates that are trusted instead of the public ones.
    pub(super) certificate: Option<PathBuf>,
    /// True if the maximum number of waiting spans is set.
    pub(super) queue_is_set: bool,
}

/// The reason why nothing can be exported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TelemetryConfigError {
    /// It is not the address of a collector.
    #[error(
        "{name} is not the address of a collector: {why}; write for example http://localhost:4318"
    )]
    Url {
        /// The option or the variable.
        name: String,
        /// The error in it.
        why: &'static str,
    },
    /// Another protocol is asked for.
    #[error(
        "{name} asks for {protocol}, and raymond speaks http/protobuf only; name the port of the collector for that, often 4318"
    )]
    Protocol {
        /// The variable.
        name: String,
        /// The protocol.
        protocol: String,
    },
    /// The certificate cannot be used.
    #[error("the certificates in {} cannot be used: {why}", path.display())]
    Certificate {
        /// The file that the variable names.
        path: PathBuf,
        /// The error in it.
        why: String,
    },
    /// The exporter refuses its configuration.
    #[error("{0}")]
    Exporter(String),
}

/// Checks the value of `--otlp`.
///
/// # Errors
/// The error in the value.
pub fn url(text: &str) -> Result<String, String> {
    checked(text).map(|()| text.to_owned()).map_err(str::to_owned)
}

impl TelemetryConfig {
    /// Returns the configuration by an option and the variables of an environment; `None` if none is asked for.
    ///
    /// # Errors
    /// [`TelemetryConfigError`] if the requested export is not possible.
    pub fn of(
        option: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, TelemetryConfigError> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let traces = endpoint("TRACES", "v1/traces", option, &variable)?;
        let metrics = endpoint("METRICS", "v1/metrics", option, &variable)?;
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        Ok(Some(Self { traces, metrics, service: variable("OTEL_SERVICE_NAME") }))
    }
}

/// Returns the endpoint of one kind of data, if it is sent at all.
fn endpoint(
    kind: &str,
    path: &str,
    option: Option<&str>,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<CollectorEndpoint>, TelemetryConfigError> {
    let exporter = variable(&format!("OTEL_{kind}_EXPORTER")).unwrap_or_default();
    let mut exporters = exporter.split(',').map(str::trim);
    if !exporter.is_empty() && !exporters.clone().any(|exporter| exporter == "otlp") {
        return Ok(None);
    }
    let own = |what: &str| named(&format!("OTEL_EXPORTER_OTLP_{kind}_{what}"), variable);
    let common = |what: &str| named(&format!("OTEL_EXPORTER_OTLP_{what}"), variable);
    let either = |what: &str| own(what).or_else(|| common(what));
    let joined = |base: &str| format!("{}/{path}", base.trim_end_matches('/'));
    let (name, url) = if let Some(base) = option {
        ("--otlp".to_owned(), joined(base))
    } else if let Some((name, url)) = own("ENDPOINT") {
        (name, url)
    } else if let Some((name, base)) = common("ENDPOINT") {
        (name, joined(&base))
    } else if exporters.any(|exporter| exporter == "otlp") {
        (String::new(), joined(HERE))
    } else {
        return Ok(None);
    };
    checked(&url).map_err(|why| TelemetryConfigError::Url { name: name.clone(), why })?;
    if let Some((name, protocol)) = either("PROTOCOL")
        && protocol != "http/protobuf"
        && option.is_none()
    {
        return Err(TelemetryConfigError::Protocol { name, protocol });
    }
    let millis = either("TIMEOUT").and_then(|(_, millis)| millis.parse().ok()).unwrap_or(10_000);
    let certificate = either("CERTIFICATE").map(|(_, path)| path.into());
    let queue_is_set = variable("OTEL_BSP_MAX_QUEUE_SIZE").is_some();
    Ok(Some(CollectorEndpoint {
        url,
        timeout: Duration::from_millis(millis),
        certificate,
        queue_is_set,
    }))
}

/// Returns the value of a variable, with its name.
fn named(name: &str, variable: &impl Fn(&str) -> Option<String>) -> Option<(String, String)> {
    Some((name.to_owned(), variable(name)?.trim().to_owned()))
}

fn checked(url: &str) -> Result<(), &'static str> {
    let uri: Uri = url.parse().map_err(|_| "it is not a URL")?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(()),
        Some("http" | "https") => Err("it names no host"),
        Some(_) => Err("only http:// and https:// can be used"),
        None => Err("it does not begin with http:// or https://"),
    }
}

impl CollectorEndpoint {
    /// Returns the address as it may be shown: without a user, a password or a query.
    pub(super) fn shown(&self) -> String {
        let Ok(uri) = self.url.parse::<Uri>() else { return "the collector".to_owned() };
        let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
        let (scheme, host) = (uri.scheme_str().unwrap_or("http"), uri.host().unwrap_or_default());
        format!("{scheme}://{host}{port}{}", uri.path())
    }
}

impl fmt::Debug for CollectorEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(
        option: Option<&str>,
        variables: &[(&str, &str)],
    ) -> Result<Option<TelemetryConfig>, TelemetryConfigError> {
        TelemetryConfig::of(option, |name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    /// Returns the endpoints of spans and metrics.
    fn urls(option: Option<&str>, variables: &[(&str, &str)]) -> [Option<String>; 2] {
        let config = config(option, variables).expect("it can be done");
        let url = |endpoint: Option<CollectorEndpoint>| endpoint.map(|endpoint| endpoint.url);
        config.map_or([None, None], |config| [url(config.traces), url(config.metrics)])
    }

    const BASE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1/base/");

    #[test]
    fn export_is_off_unless_requested() {
        for variables in [&[][..], &[("OTEL_SERVICE_NAME", "x")], &[(BASE.0, " ")]] {
            assert_eq!(config(None, variables), Ok(None), "{variables:?}");
        }
        for off in [("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_SDK_DISABLED", "true")] {
            assert_eq!(config(Some("http://c"), &[BASE, off]), Ok(None));
        }
    }

    #[test]
    fn base_endpoint_serves_traces_and_metrics() {
        let both = |base: &str| ["traces", "metrics"].map(|kind| Some(format!("{base}/v1/{kind}")));
        assert_eq!(urls(Some("https://c"), &[BASE]), both("https://c"));
        assert_eq!(urls(None, &[BASE]), both("http://c:1/base"));
    }

    #[test]
    fn traces_endpoint_is_used_verbatim_and_enables_only_traces() {
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/here");
        assert_eq!(urls(None, &[traces]), [Some("http://t/here".to_owned()), None]);
        let metrics = Some("http://c:1/base/v1/metrics".to_owned());
        assert_eq!(urls(None, &[traces, BASE]), [Some("http://t/here".to_owned()), metrics]);
    }

    #[test]
    fn exporter_variable_enables_or_disables_a_signal() {
        let here = Some("http://localhost:4318/v1/metrics".to_owned());
        assert_eq!(urls(None, &[("OTEL_METRICS_EXPORTER", "otlp")]), [None, here]);
        let metrics = Some("http://c/v1/metrics".to_owned());
        assert_eq!(
            urls(Some("http://c"), &[("OTEL_TRACES_EXPORTER", "none")]),
            [None, metrics.clone()]
        );
        assert_eq!(urls(Some("http://c"), &[("OTEL_TRACES_EXPORTER", "zipkin")]), [None, metrics]);
    }

    #[test]
    fn unsupported_protocol_or_endpoint_is_an_error() {
        let said = |variables: &[(&str, &str)]| {
            config(None, variables).expect_err("a problem").to_string()
        };
        let grpc = said(&[BASE, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        assert!(grpc.contains("OTEL_EXPORTER_OTLP_PROTOCOL asks for grpc"), "{grpc}");
        let bad = said(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")]);
        assert!(bad.contains("OTEL_EXPORTER_OTLP_ENDPOINT is not the address"), "{bad}");
        for bad in ["", "localhost", "ftp://c", "http://", "http:// c", "/v1"] {
            assert!(url(bad).is_err(), "{bad:?} was taken");
        }
        assert_eq!(url("http://c:4318"), Ok("http://c:4318".to_owned()));
    }

    #[test]
    fn debug_output_hides_secrets_of_the_address() {
        let config =
            config(Some("https://me:secret@c:1/x?key=hidden"), &[]).expect("it can be done");
        let shown = format!("{config:?}");
        assert!(!shown.contains("secret") && !shown.contains("hidden"), "{shown}");
        assert!(shown.contains("https://c:1/x"), "{shown}");
    }
}
