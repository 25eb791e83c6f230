//! Layers one over the other, and archives that were made to do harm.

use tar::{Builder, Header};

use super::*;

/// An archive with entries of these types, names and contents.
fn archive(entries: &[(EntryType, &str, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (kind, name, bytes) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        let field = &mut header.as_old_mut().name;
        field[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, *bytes).expect("memory can be written");
    }
    builder.into_inner().expect("memory can be written")
}

/// The names of the files that layers of plain files lead to, or why they do not.
fn names(layers: &[&[&str]]) -> String {
    let layers = layers.iter().map(|names| {
        let entries: Vec<_> =
            names.iter().map(|name| (EntryType::Regular, *name, &b"x"[..])).collect();
        archive(&entries)
    });
    read(layers)
}

fn read(layers: impl IntoIterator<Item = Vec<u8>>) -> String {
    let mut files = Files::default();
    for layer in layers {
        if let Err(error) = files.add_stream(Path::new("layer"), layer.as_slice()) {
            return error.to_string();
        }
    }
    let names =
        files.into_files().into_iter().map(|file| format!("{}/{}", file.directory, file.name));
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn later_layers_take_away_files_and_directories_of_earlier_ones() {
    let first: &[&str] = &["manifests/a.yaml", "manifests/b.yaml", "release-manifests/c.yaml"];
    for (layer, left) in [
        (&["manifests/.wh.a.yaml"][..], "manifests/b.yaml release-manifests/c.yaml"),
        (&[".wh.manifests"], "release-manifests/c.yaml"),
        (&["./.wh.release-manifests", "x"], "manifests/a.yaml manifests/b.yaml"),
        (&[".wh..wh..opq"], ""),
        // Before or after it in the layer, what a layer brings stays.
        (
            &["manifests/d.yaml", "manifests/.wh..wh..opq"],
            "manifests/d.yaml release-manifests/c.yaml",
        ),
        (
            &["manifests/.wh..wh..opq", "manifests/d.yaml"],
            "manifests/d.yaml release-manifests/c.yaml",
        ),
        (&["manifests/a.yaml", ".wh.manifests"], "manifests/a.yaml release-manifests/c.yaml"),
    ] {
        assert_eq!(names(&[first, layer]), left, "{layer:?}");
    }
}

#[test]
fn long_names_are_read_and_endless_ones_refused() {
    let name = format!("manifests/{}.yaml", "n".repeat(200));
    let gnu = archive(&[
        (EntryType::GNULongName, "././@LongLink", format!("{name}\0").as_bytes()),
        (EntryType::Regular, "manifests/short", b"x"),
        (EntryType::Regular, "manifests/z.yaml", b"x"),
    ]);
    assert_eq!(read([gnu]), format!("{name} manifests/z.yaml"));
    let record = format!(" path={name}\n");
    let pax = format!("{}{record}", record.len() + 3);
    let pax = archive(&[
        (EntryType::XHeader, "PaxHeaders/x", pax.as_bytes()),
        (EntryType::Regular, "manifests/short", b"x"),
    ]);
    assert_eq!(read([pax]), name);
    let large = vec![b'n'; 2 << 20];
    for kind in [
        EntryType::GNULongName,
        EntryType::XHeader,
        EntryType::XGlobalHeader,
        EntryType::GNULongLink,
    ] {
        let error = read([archive(&[(kind, "x", &large)])]);
        assert_eq!(
            error, "layer: a header with a name or attributes is larger than 1 MiB",
            "{kind:?}"
        );
    }
}

#[test]
fn links_and_names_that_are_no_text_are_refused() {
    let link = archive(&[(EntryType::Symlink, "manifests", b"")]);
    assert_eq!(read([link]), "layer: manifests: not a directory; a payload has no links");
    let link = archive(&[(EntryType::Symlink, "manifests/a.yaml", b"")]);
    assert_eq!(read([link]), "layer: manifests/a.yaml: not a plain file; a payload has no links");
    let name = archive(&[
        (EntryType::GNULongName, "x", b"manifests/\xff.yaml\0"),
        (EntryType::Regular, "x", b"x"),
    ]);
    assert_eq!(read([name]), "layer: manifests/\u{fffd}.yaml: its name is not UTF-8");
}

#[test]
fn damaged_archives_end_in_an_answer() {
    let whole = archive(&[
        (EntryType::GNULongName, "././@LongLink", b"manifests/long.yaml\0"),
        (EntryType::Regular, "x", b"kind: X\n"),
        (EntryType::XHeader, "x", b"27 path=manifests/b.yaml\n\n"),
        (EntryType::Directory, "manifests/", b""),
        (EntryType::Regular, "manifests/.wh.a.yaml", b""),
    ]);
    // Every byte of the headers in turn, with the values that parsers stumble over.
    for at in 0..whole.len() {
        for value in [0, 0x20, 0x37, 0x39, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = value;
            read([damaged]);
        }
    }
    for end in 0..whole.len() {
        read([whole[..end].to_vec()]);
    }
}
