//! What the command line takes.

use clap::Parser;

use super::{SandboxCommand, loopback};

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    command: SandboxCommand,
}

#[test]
fn only_loopback_addresses_are_listened_on() {
    let cases = [
        ("127.0.0.1:0", None),
        ("[::1]:8001", None),
        ("0.0.0.0:8001", Some("listens on loopback addresses only")),
        ("192.168.0.1:8001", Some("listens on loopback addresses only")),
        (":8001", Some("listens on loopback addresses only")),
        ("localhost:8001", None),
        ("localhost", Some("is not ADDRESS:PORT")),
    ];
    for (text, expected) in cases {
        let problem = loopback(text).err();
        assert_eq!(problem.is_some(), expected.is_some(), "{text}: {problem:?}");
        assert!(problem.unwrap_or_default().contains(expected.unwrap_or_default()), "{text}");
    }
}

#[test]
fn without_tls_is_a_choice() {
    let cases = [
        ("serve", false),
        ("serve --kubeconfig k", true),
        ("serve --plain", true),
        ("serve --plain --kubeconfig k", true),
    ];
    for (line, is_valid) in cases {
        let words = std::iter::once("sandbox").chain(line.split(' '));
        assert_eq!(Line::try_parse_from(words).is_ok(), is_valid, "{line}");
    }
}

#[test]
fn programs_take_any_flags() {
    let line = ["sandbox", "kube-apiserver", "--help", "--secure-port", "1", "-v=2", "--x=y"];
    let SandboxCommand::KubeApiserver(arguments) = Line::try_parse_from(line).unwrap().command
    else {
        panic!("another command");
    };
    assert_eq!(arguments.flags, line[2..]);
}

#[test]
fn releases_can_be_given_several_times() {
    let line = ["sandbox", "operators", "--release", "a", "--release", "b", "--delay", "2s"];
    let SandboxCommand::Operators(arguments) = Line::try_parse_from(line).unwrap().command else {
        panic!("another command");
    };
    assert_eq!(arguments.release.len(), 2);
    assert_eq!(arguments.delay.as_secs(), 2);
    assert!(Line::try_parse_from(["sandbox", "operators"]).is_ok(), "Operators need no release");
}
