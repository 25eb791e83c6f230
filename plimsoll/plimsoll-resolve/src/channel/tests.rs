//! Orders of channels, each written as one line.

use super::*;

/// Reads `a<-b` as "a replaces b", `a!b` as "a skips b".
fn channel(text: &str) -> Channel {
    let entries = text.split_whitespace().map(|word| {
        let (word, skips) = match word.split_once('!') {
            Some((word, skips)) => (word, skips.split('!').map(str::to_owned).collect()),
            None => (word, Vec::new()),
        };
        let (name, replaces) = match word.split_once("<-") {
            Some((name, replaces)) => (name, Some(replaces.to_owned())),
            None => (word, None),
        };
        ChannelEntry { name: name.to_owned(), replaces, skips, skip_range: None }
    });
    Channel { name: "stable".to_owned(), entries: entries.collect(), ..Channel::default() }
}

fn check(text: &str, expected: &str) {
    let channel = channel(text);
    let order = order(&channel);
    let names: Vec<&str> =
        order.entries.iter().map(|at| channel.entries[*at].name.as_str()).collect();
    assert_eq!(order.broken.unwrap_or_else(|| names.join(" ")), expected, "{text}");
}

#[test]
fn entries_are_in_order_from_the_one_head() {
    check("a", "a");
    check("a b<-a c<-b", "c b a");
    check("a b<-a c<-b!a", "c b");
    check("a b!a", "b");
    check("b<-gone", "b");
    check("a b<-a stray!a c<-b!stray", "c b");
}

#[test]
fn a_channel_without_one_head_is_broken() {
    check("", "it has no entries");
    check("a<-b b<-a", "it has no head: its entries replace each other");
    check("a<-b b<-a c<-b", "its entries replace each other in a cycle at b");
    check("a b", "it has 2 heads, such as a and b");
}
