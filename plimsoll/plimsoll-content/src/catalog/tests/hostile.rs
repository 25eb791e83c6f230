//! Catalogs that are meant to do harm: they end in defects, in bounded time and memory.

use std::fmt::Write as _;

use super::{BUNDLE, CHANNEL, PACKAGE, load, reported};
use crate::catalog::{CatalogIndex, CatalogLoader, DefectCode, LIST_MAX};

/// A channel with so many entries, each replacing what `replaces` says of its number.
fn channel(entries: usize, replaces: impl Fn(usize) -> Option<usize>) -> String {
    let mut text = r#"{"schema":"olm.channel","package":"a","name":"s","entries":["#.to_owned();
    for entry in 0..entries {
        let comma = if entry == 0 { "" } else { "," };
        write!(text, r#"{comma}{{"name":"a.v{entry}""#).expect("a string takes everything");
        if let Some(other) = replaces(entry) {
            write!(text, r#","replaces":"a.v{other}""#).expect("a string takes everything");
        }
        text.push('}');
    }
    text.push_str("]}");
    text
}

fn has(text: &str, code: DefectCode) -> bool {
    load(text).defects.iter().any(|it| it.code == code)
}

#[test]
fn a_channel_with_a_million_entries_is_refused() {
    let text = channel(1_000_000, |entry| entry.checked_sub(1));
    let loaded = load(&format!("{PACKAGE}\n{text}\n{BUNDLE}\n"));
    let said = reported(&loaded.defects);
    assert!(said.contains(&format!("a list of more than {LIST_MAX} items")), "{said}");
    // Cut into pieces it takes no longer.
    let mut loader = CatalogLoader::new();
    let mut file = loader.file("c");
    text.as_bytes().chunks(1 << 16).for_each(|piece| file.push(piece));
    file.finish();
    assert!(!loader.finish().defects.is_empty());
}

#[test]
fn circles_and_many_heads_have_no_order() {
    let circle = channel(1000, |entry| Some((entry + 999) % 1000));
    assert!(has(&format!("{PACKAGE}\n{circle}\n"), DefectCode::ChannelOrder));
    // A head that leads into a circle.
    let tail = channel(1000, |entry| Some(if entry == 0 { 500 } else { entry - 1 }));
    assert!(has(&format!("{PACKAGE}\n{tail}\n"), DefectCode::ChannelOrder));
    let heads = channel(1000, |_| None);
    assert!(has(&format!("{PACKAGE}\n{heads}\n"), DefectCode::ChannelOrder));
    let itself = channel(1, Some);
    assert!(has(&format!("{PACKAGE}\n{itself}\n"), DefectCode::ChannelOrder));
}

#[test]
fn deep_nesting_is_refused_or_skipped() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let text = format!(r#"{{"schema":"olm.package","name":"a","x":{}}}"#, deep(100_000));
    assert!(!load(&text).defects.is_empty());
    let constraint = "{\"not\":{\"constraints\":[".repeat(60) + &"]}}".repeat(60);
    let property = format!(r#"{{"type":"olm.constraint","value":{constraint}}}"#);
    assert!(has(&super::bundle_with(&property), DefectCode::Dependency), "{property}");
    assert!(load(&format!("a: {}\n", deep(100_000))).defects[0].code == DefectCode::Syntax);
}

#[test]
fn huge_texts_and_documents_are_bounded() {
    let huge = "x".repeat(40 << 20);
    let text =
        format!("{{\"schema\":\"olm.package\",\"name\":\"{huge}\n{PACKAGE}\n{CHANNEL}\n{BUNDLE}\n");
    let mut loader = CatalogLoader::new();
    let mut file = loader.file("c");
    text.as_bytes().chunks(1 << 20).for_each(|piece| file.push(piece));
    file.finish();
    let loaded = loader.finish();
    assert_eq!(loaded.defects[0].code, DefectCode::TooLarge, "{}", reported(&loaded.defects));
    assert_eq!(loaded.open().counts().packages, 1, "what comes after it is read");
}

#[test]
fn duplicate_names_and_alias_bombs_end_in_defects() {
    let many = format!("{PACKAGE}\n{CHANNEL}\n{}", format!("{BUNDLE}\n").repeat(20_000));
    assert!(has(&many, DefectCode::Duplicate));
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let before = format!("*a{}", level - 1);
        let items = [before.as_str(); 9].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{items}]").expect("a string takes everything");
    }
    let said = reported(&load(&bomb).defects);
    assert!(said.contains("aliases expand"), "{said}");
}

#[test]
fn whatever_is_changed_in_an_index_is_noticed_or_harmless() {
    let good = load(&format!("{PACKAGE}\n{CHANNEL}\n{BUNDLE}\n")).index;
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x55;
        let Ok(index) = CatalogIndex::open(bytes) else { continue };
        let read =
            index.package("a").and_then(|block| block.map(|it| it.read().map(drop)).transpose());
        let defects = index.defects();
        assert!(read.is_err() || defects.is_err(), "byte {at}");
    }
    for length in 0..good.len() {
        assert!(CatalogIndex::open(good[..length].to_vec()).is_err(), "{length} bytes");
    }
}

#[test]
fn endless_names_and_messages_are_cut_off() {
    let name = "n".repeat(10 << 20);
    let loaded = load(&format!("{PACKAGE}\n{CHANNEL}\n{}\n", BUNDLE.replace("a.v1", &name)));
    assert_eq!(
        reported(&loaded.defects),
        "c:2: error [no-bundle]: package a: channel s: there is no bundle a.v1\n\
         c:3: error [too-large]: olm.bundle with a name of 10485760 bytes, at most 253 are read"
    );
    let loaded = load(&format!("{PACKAGE}\n{}\n{BUNDLE}\n", CHANNEL.replace("a.v1", &name)));
    assert!(loaded.defects.iter().all(|defect| defect.message.len() < 3_000), "it is cut off");
}
