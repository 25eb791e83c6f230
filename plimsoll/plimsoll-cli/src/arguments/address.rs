//! Addresses to listen on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Reads `ADDRESS:PORT`, `localhost:PORT`, or `:PORT` for all addresses.
///
/// # Errors
///
/// When it is none of these.
pub(crate) fn parse(text: &str) -> Result<SocketAddr, String> {
    let wrong = || {
        format!(
            "`{text}` is not ADDRESS:PORT; write an IP address, such as 127.0.0.1:9099, or :9099 for all"
        )
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let of = |address: IpAddr| port.parse().map(|port| SocketAddr::new(address, port));
    match host {
        "" => of(Ipv6Addr::UNSPECIFIED.into()).map_err(|_| wrong()),
        "localhost" => of(Ipv4Addr::LOCALHOST.into()).map_err(|_| wrong()),
        _ => text.parse().map_err(|_| wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn addresses_are_written_as_in_kubernetes_programs() {
        let check = |text: &str, expected: &str| {
            let parsed = parse(text).map(|it| it.to_string());
            assert_eq!(parsed.as_deref().unwrap_or("wrong"), expected, "{text}");
        };
        check("127.0.0.1:9099", "127.0.0.1:9099");
        check("[::1]:9099", "[::1]:9099");
        check(":9099", "[::]:9099");
        check("localhost:0", "127.0.0.1:0");
        for text in ["9099", "127.0.0.1", ":", ":65536", "harbour:1", "::1:9099:"] {
            check(text, "wrong");
        }
    }
}
