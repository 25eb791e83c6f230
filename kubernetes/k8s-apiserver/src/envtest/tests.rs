//! What the programs make of their flags.
use super::{Flags, Program, static_tokens};

fn flags(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn flags_are_taken_in_both_notations() {
    let cases = [
        ("--secure-port=1", Some("1")),
        ("--secure-port 1", Some("1")),
        ("--secure-port=1 --secure-port=2", Some("2")),
        ("--allow-privileged --secure-port 1", Some("1")),
        ("--secure-port --allow-privileged", None),
        ("--secure-port=", None),
        ("secure-port=1", None),
    ];
    for (line, expected) in cases {
        assert_eq!(Flags::parse(&flags(line)).get("secure-port"), expected, "{line}");
    }
}

#[test]
fn help_and_version_are_printed_instead_of_running() {
    let cases = [
        (Program::Etcd, "--help", Some("--unsafe-no-fsync")),
        (Program::KubeApiserver, "-h", Some("--client-ca-file")),
        (Program::KubeApiserver, "--version", Some("Kubernetes v1.")),
        (Program::KubeApiserver, "--secure-port 1", None),
    ];
    for (program, line, expected) in cases {
        let printed = program.information(&flags(line));
        assert_eq!(printed.is_some(), expected.is_some(), "{line}");
        assert!(printed.unwrap_or_default().contains(expected.unwrap_or_default()), "{line}");
    }
    let help = Program::KubeApiserver.information(&flags("--help")).unwrap();
    assert!(!help.contains("insecure-port"), "suites would give the flag");
}

#[test]
fn a_token_file_names_users_and_groups() {
    let tokens = static_tokens("t1,alice,7,\"a,b\"\nt2,bob,8\n\nt3\n");
    let users: Vec<_> = tokens.iter().map(|found| found.user.username.as_str()).collect();
    assert_eq!(users, ["alice", "bob"]);
    assert_eq!((tokens[0].token.as_str(), tokens[0].user.uid.as_str()), ("t1", "7"));
    assert_eq!(tokens[0].user.groups, ["a", "b"]);
}
