//! Which addresses are public: what a destination may reach that must not reach into our own network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address that a destination must not reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} is not a public address")]
pub(super) struct NotPublic(pub(super) IpAddr);

/// Blocks of IPv4 that are no host of the public internet: the registry of special-purpose addresses (IANA, RFC 6890),
/// multicast and what is reserved beyond it. Among them are loopback (127/8), the private blocks of RFC 1918, link-local
/// with the metadata service of most clouds (169.254.169.254), the shared space of RFC 6598 (100.64/10, with Alibaba's
/// metadata service), the blocks for documentation and benchmarks, and broadcast. The last one is Azure's own server,
/// which each of its machines reaches under a public address.
const NOT_PUBLIC_V4: [([u8; 4], u32); 17] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 31, 196, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
    ([168, 63, 129, 16], 32),
];

/// Blocks within 2000::/3 that are no host of the public internet: protocol assignments with Teredo, which carries an
/// IPv4 address of the peer's choice, and the two blocks for documentation.
const NOT_PUBLIC_V6: [(Ipv6Addr, u32); 3] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Refuses what is not public. An address that stands for an IPv4 address (mapped, NAT64 under its well-known prefix,
/// 6to4) is judged by that one; of IPv6 nothing beyond 2000::/3 is public, so neither loopback, link-local, unique local
/// (with fd00:ec2::254, a metadata service), multicast nor the old compatible form. A NAT64 prefix of one's own cannot be
/// told from other addresses: that is for the network to guard.
pub(super) fn public(address: IpAddr) -> Result<(), NotPublic> {
    let is_public = match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => match embedded(v6) {
            Some(v4) => is_public_v4(v4),
            None => {
                within_v6(v6, Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3)
                    && !NOT_PUBLIC_V6.iter().any(|(block, bits)| within_v6(v6, *block, *bits))
            }
        },
    };
    if is_public { Ok(()) } else { Err(NotPublic(address)) }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |block: [u8; 4], bits: u32| (address.to_bits() ^ u32::from_be_bytes(block)) >> (32 - bits) == 0;
    !NOT_PUBLIC_V4.iter().any(|(block, bits)| within(*block, *bits))
}

fn within_v6(address: Ipv6Addr, block: Ipv6Addr, bits: u32) -> bool {
    (address.to_bits() ^ block.to_bits()) >> (128 - bits) == 0
}

/// The IPv4 address that an IPv6 address stands for.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // RFC 4291 section 2.5.5.2.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        // RFC 6052 section 2.1.
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        // RFC 3056 section 2.
        | [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_not_public_is_refused_in_every_disguise() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::808:808",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            let address: IpAddr = address.parse().expect("an address");
            assert_eq!(public(address), Err(NotPublic(address)));
        }
    }

    #[test]
    fn what_is_public_is_let_through() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2001:4860:4860::8888",
            "64:ff9b::8.8.8.8",
            "::ffff:8.8.8.8",
            "2002:808:808::1",
        ] {
            assert_eq!(public(address.parse().expect("an address")), Ok(()), "{address}");
        }
    }

    proptest! {
        /// The standard library's words for it, where it has some, agree.
        #[test]
        fn what_the_standard_library_calls_special_is_not_public(bits: u32) {
            let v4 = Ipv4Addr::from_bits(bits);
            let special = v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_multicast()
                || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified();
            prop_assert!(!(special && is_public_v4(v4)));
            prop_assert_eq!(public(v4.to_ipv6_mapped().into()).is_ok(), is_public_v4(v4));
        }
    }
}
