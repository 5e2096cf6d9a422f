//! Non-public addresses that the graphs of a run may fetch from, as its user allows.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::special_address::is_within;

/// An address, network or host, perhaps with a port: `127.0.0.1`, `10.0.0.0/8`, `[::1]:8080`, `localhost:3000`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct AllowedAddress {
    target: AddressTarget,
    port: Option<u16>,
}

/// An allowed destination, without the port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum AddressTarget {
    /// The addresses that share the given number of leading bits with this one.
    Network(IpAddr, u8),
    /// The addresses that a name resolves to.
    Host(String),
}

impl AllowedAddress {
    /// Returns whether a connection to an address at a port is allowed; `None` stands for an unknown port.
    pub fn covers(&self, address: IpAddr, port: Option<u16>) -> bool {
        let AddressTarget::Network(network, length) = &self.target else { return false };
        let is_same = match (address.to_canonical(), network) {
            (IpAddr::V4(address), IpAddr::V4(network)) => {
                let [address, network] = [address, *network].map(|one| one.to_bits().into());
                is_within(address, network, u32::from(*length), 32)
            }
            (IpAddr::V6(address), IpAddr::V6(network)) => {
                is_within(address.to_bits(), network.to_bits(), u32::from(*length), 128)
            }
            _ => false,
        };
        is_same && (self.port.is_none() || self.port == port)
    }

    /// Returns whether it names a host.
    pub fn names(&self, host: &str) -> bool {
        matches!(&self.target, AddressTarget::Host(name) if name.eq_ignore_ascii_case(bare(host)))
    }

    /// Returns whether it applies to a port.
    pub fn is_for_port(&self, port: Option<u16>) -> bool {
        self.port.is_none() || self.port == port
    }
}

/// Returns a name without the dot that may end it.
fn bare(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

impl FromStr for AllowedAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let whole = |address: IpAddr| {
            let address = address.to_canonical();
            AddressTarget::Network(address, if address.is_ipv4() { 32 } else { 128 })
        };
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self { target: whole(address), port: None });
        }
        if let Some((address, length)) = text.split_once('/') {
            return network(address, length)
                .map(|target| Self { target, port: None })
                .ok_or_else(|| format!("`{text}` is not a network; write one such as 10.0.0.0/8"));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => {
                let port = port.parse::<u16>().ok().filter(|&port| port > 0);
                (
                    host,
                    Some(port.ok_or_else(|| format!("`{text}` ends in no port from 1 to 65535"))?),
                )
            }
            None => (text, None),
        };
        let unbracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if let Ok(address) = unbracketed.unwrap_or(host).parse::<IpAddr>()
            && address.is_ipv6() == unbracketed.is_some()
        {
            return Ok(Self { target: whole(address), port });
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let name = bare(host);
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!(
                "`{text}` is not an address; write one such as 127.0.0.1, 10.0.0.0/8, [::1]:8080 or localhost:3000"
            ));
        }
        Ok(Self { target: AddressTarget::Host(name.to_ascii_lowercase()), port })
    }
}

fn network(address: &str, length: &str) -> Option<AddressTarget> {
    let address = address.parse::<IpAddr>().ok()?;
    let length = length.parse::<u8>().ok()?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    (length <= width).then_some(AddressTarget::Network(address, length))
}

impl fmt::Display for AllowedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.target, self.port) {
            (AddressTarget::Network(address, 32), None) if address.is_ipv4() => {
                write!(f, "{address}")
            }
            (AddressTarget::Network(address, 128), None) => write!(f, "{address}"),
            (AddressTarget::Network(address, length), None) => write!(f, "{address}/{length}"),
            (AddressTarget::Network(IpAddr::V6(address), _), Some(port)) => {
                write!(f, "[{address}]:{port}")
            }
            (AddressTarget::Network(address, _), Some(port)) => write!(f, "{address}:{port}"),
            (AddressTarget::Host(name), None) => f.write_str(name),
            (AddressTarget::Host(name), Some(port)) => write!(f, "{name}:{port}"),
        }
    }
}

impl TryFrom<String> for AllowedAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<AllowedAddress> for String {
    fn from(allowed: AllowedAddress) -> Self {
        allowed.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> AllowedAddress {
        text.parse().expect("an address")
    }

    fn covers(allowed: &str, address: &str, port: u16) -> bool {
        read(allowed).covers(address.parse().expect("an address"), Some(port))
    }

    #[test]
    fn address_network_and_host_round_trip_as_text() {
        let table = [
            "127.0.0.1",
            "127.0.0.1:8080",
            "10.0.0.0/8",
            "::1",
            "[::1]:8080",
            "fd00::/8",
            "localhost",
            "localhost:3000",
            "build-host.corp",
            "0.0.0.0/0",
        ];
        for text in table {
            assert_eq!(read(text).to_string(), text);
        }
        assert_eq!(read("LOCALHOST.").to_string(), "localhost");
        assert_eq!(read("::ffff:10.0.0.1").to_string(), "10.0.0.1");
        for bad in
            ["", ":80", "a b", "10.0.0.0/33", "x/8", "host:0", "host:x", "http://x", "[::1", "*"]
        {
            assert!(bad.parse::<AllowedAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn allowed_address_covers_only_its_network_and_port() {
        assert!(covers("127.0.0.1", "127.0.0.1", 1) && covers("127.0.0.1", "::ffff:127.0.0.1", 1));
        assert!(!covers("127.0.0.1", "127.0.0.2", 1));
        assert!(
            covers("127.0.0.1:80", "127.0.0.1", 80) && !covers("127.0.0.1:80", "127.0.0.1", 81)
        );
        assert!(covers("10.0.0.0/8", "10.9.8.7", 1) && !covers("10.0.0.0/8", "11.0.0.1", 1));
        assert!(covers("0.0.0.0/0", "192.168.0.1", 1) && !covers("0.0.0.0/0", "::1", 1));
        assert!(covers("fd00::/8", "fd12::1", 1) && !covers("localhost", "127.0.0.1", 1));
        assert!(!read("127.0.0.1:80").covers("127.0.0.1".parse().expect("one"), None));
    }

    #[test]
    fn host_name_matches_ignoring_case_and_trailing_dot() {
        assert!(read("localhost").names("LocalHost.") && !read("localhost").names("localhost.x"));
        assert!(
            read("localhost:80").names("localhost") && !read("localhost:80").is_for_port(Some(81))
        );
    }
}
