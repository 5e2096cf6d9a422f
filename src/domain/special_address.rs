//! Addresses outside of the public internet: the services there are not meant for everyone.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
