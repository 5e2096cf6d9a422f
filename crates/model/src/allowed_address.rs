//! Non-public addresses: which they are, and which of them the graphs of a run may fetch from, as its user allows.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
                let [address, network] = [address, *network].map(|ip| ip.to_bits().into());
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
        if let Some((_, rest)) = text.split_once("://") {
            let host = rest.split('/').next().unwrap_or_default();
            return Err(format!("write it without scheme and path: {host}"));
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

// Addresses outside the public internet: the services there are not meant for everyone.

/// A range of IPv4 addresses: the first address, the length of the prefix, and the kind of the addresses.
type Ipv4Range = ([u8; 4], u32, &'static str);

/// A range of IPv6 addresses.
type Ipv6Range = ([u16; 8], u32, &'static str);

/// The IPv4 ranges of IANA's registry, and addresses at which clouds tell a machine its secrets.
const SPECIAL4: [Ipv4Range; 17] = [
    ([169, 254, 169, 254], 32, "a metadata address of clouds"),
    ([168, 63, 129, 16], 32, "a metadata address of clouds"),
    ([100, 100, 100, 200], 32, "a metadata address of clouds"),
    ([0, 0, 0, 0], 8, "an address of this host"),
    ([10, 0, 0, 0], 8, "a private address"),
    ([100, 64, 0, 0], 10, "a carrier's private address"),
    ([127, 0, 0, 0], 8, "a loopback address"),
    ([169, 254, 0, 0], 16, "a link-local address"),
    ([172, 16, 0, 0], 12, "a private address"),
    ([192, 0, 0, 0], 24, "an address reserved for protocols"),
    ([192, 0, 2, 0], 24, "an address for documentation"),
    ([192, 88, 99, 0], 24, "an address of 6to4 relays"),
    ([192, 168, 0, 0], 16, "a private address"),
    ([198, 18, 0, 0], 15, "an address for benchmarks"),
    ([198, 51, 100, 0], 24, "an address for documentation"),
    ([203, 0, 113, 0], 24, "an address for documentation"),
    ([255, 255, 255, 255], 32, "the broadcast address"),
];

/// The IPv6 ranges that do not stand for an IPv4 address.
const SPECIAL6: [Ipv6Range; 13] = [
    ([0; 8], 128, "an address of this host"),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, "a loopback address"),
    ([0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254], 128, "a metadata address of clouds"),
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "an address of a local translation"),
    ([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "an address that discards"),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "an address reserved for protocols"),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "an address for documentation"),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "an address for documentation"),
    ([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, "an address of segment routing"),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "a private address"),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "a link-local address"),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "a private address"),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "a multicast address"),
];

/// Returns the kind of an address outside of the public internet; `None` for a public address.
pub fn special_address(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special4(address),
        IpAddr::V6(address) => {
            let range = SPECIAL6.iter().find(|&&(first, length, _)| {
                is_within(address.to_bits(), Ipv6Addr::from(first).to_bits(), length, 128)
            });
            match (range, wrapped(address)) {
                (Some(&(.., kind)), _) => Some(kind),
                (None, Some(wrapped)) => special4(wrapped),
                // Of the other addresses, only this range is assigned.
                (None, None) if address.segments()[0] >> 13 == 1 => None,
                (None, None) => Some("a reserved address"),
            }
        }
    }
}

fn special4(address: Ipv4Addr) -> Option<&'static str> {
    let range = SPECIAL4.iter().find(|&&(first, length, _)| {
        is_within(address.to_bits().into(), Ipv4Addr::from(first).to_bits().into(), length, 32)
    });
    let kind = range.map(|&(.., kind)| kind);
    kind.or_else(|| address.is_multicast().then_some("a multicast address"))
        .or_else(|| (address.octets()[0] >= 240).then_some("a reserved address"))
}

/// Returns the IPv4 address that an IPv6 address stands for: mapped, compatible, translated (NAT64) or by 6to4.
fn wrapped(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match segments {
        [0, 0, 0, 0, 0, 0xffff | 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

/// Returns whether two addresses of `width` bits begin with the same `length` bits.
pub(super) fn is_within(address: u128, network: u128, length: u32, width: u32) -> bool {
    let rest = width.saturating_sub(length);
    address.checked_shr(rest).unwrap_or(0) == network.checked_shr(rest).unwrap_or(0)
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
    fn url_is_refused_with_its_host() {
        let error = "https://localhost:3000/a?b".parse::<AllowedAddress>().expect_err("a URL");
        assert_eq!(error, "write it without scheme and path: localhost:3000");
    }

    #[test]
    fn host_name_matches_ignoring_case_and_trailing_dot() {
        assert!(read("localhost").names("LocalHost.") && !read("localhost").names("localhost.x"));
        assert!(
            read("localhost:80").names("localhost") && !read("localhost:80").is_for_port(Some(81))
        );
    }
}

#[cfg(test)]
mod special_address_tests {
    use super::*;

    #[test]
    fn special_and_public_addresses_are_distinguished() {
        let special = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "169.254.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "::ffff:0:127.0.0.1",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:db8::1",
            "2002:a00:1::",
            "2002:7f00:1::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "ffff::1",
            "5f00::1",
            "1::1",
            "4000::1",
        ];
        for address in special {
            let parsed: IpAddr = address.parse().expect("an address");
            assert!(special_address(parsed).is_some(), "{address}");
        }
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.0.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ];
        for address in public {
            let parsed: IpAddr = address.parse().expect("an address");
            assert_eq!(special_address(parsed), None, "{address}");
        }
    }

    #[test]
    fn special_address_is_described_by_kind() {
        let kind = |text: &str| special_address(text.parse().expect("an address"));
        assert_eq!(kind("169.254.169.254"), Some("a metadata address of clouds"));
        assert_eq!(kind("::ffff:127.0.0.1"), Some("a loopback address"));
        assert_eq!(kind("fd12::1"), Some("a private address"));
    }
}
