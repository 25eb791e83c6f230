//! Ranges: step numbers as text.

use crate::progress::{format_ranges, parse_ranges};

#[test]
fn ranges_are_read_as_they_were_written() {
    for (numbers, text) in [(vec![], ""), (vec![3], "3"), (vec![0, 1, 2, 5, 7, 8], "0-2,5,7-8")] {
        assert_eq!(format_ranges(&numbers), text);
        assert_eq!(parse_ranges(text, 100), numbers);
    }
    assert_eq!(parse_ranges("0-99999999999,x,1-", 2), [0, 1]);
}
