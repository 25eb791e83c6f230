//! Sets of step numbers as text that people can read: `0-17,20`.

use std::collections::BTreeSet;

/// Writes ascending numbers as ranges.
pub fn format_ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == number => *end = number,
            _ => ranges.push((number, number)),
        }
    }
    let texts = ranges.into_iter().map(|(start, end)| {
        if start == end { start.to_string() } else { format!("{start}-{end}") }
    });
    texts.collect::<Vec<_>>().join(",")
}

/// Reads what [`format_ranges`] wrote; numbers from `limit` on and anything unreadable are left
/// out, so that a damaged record costs work and nothing else.
pub fn parse_ranges(text: &str, limit: usize) -> Vec<usize> {
    let ranges = text.split(',').filter_map(|range| {
        let (start, end) = range.split_once('-').unwrap_or((range, range));
        Some(start.trim().parse().ok()?..=end.trim().parse::<usize>().ok()?)
    });
    // Each number once while they are collected: a text may repeat a range as often as it likes.
    let numbers = ranges.flat_map(|range| range.take_while(|number| *number < limit));
    numbers.collect::<BTreeSet<usize>>().into_iter().collect()
}
