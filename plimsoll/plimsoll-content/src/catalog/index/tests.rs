//! Directories of any size.

use std::collections::BTreeMap;

use super::directory::{Directory, write};

#[test]
fn a_directory_finds_what_is_in_it_and_nothing_else() {
    for size in [0_u32, 1, 2, 3, 100] {
        let entries: BTreeMap<String, Vec<u8>> =
            (0..size).map(|at| (format!("k{}", at * 2), at.to_le_bytes().to_vec())).collect();
        let mut bytes = Vec::new();
        write(&entries, &mut bytes).expect("it is small");
        bytes.extend_from_slice(b"rest");
        let (directory, rest) = Directory::read(&bytes).expect("it was just written");
        assert_eq!(rest, b"rest");
        assert!(directory.keys().eq(entries.keys().map(String::as_str)));
        for at in 0..size {
            let value = at.to_le_bytes();
            assert_eq!(directory.get(&format!("k{}", at * 2)), Some(value.as_slice()));
            assert_eq!(directory.get(&format!("k{}", at * 2 + 1)), None);
        }
    }
}
