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

/// The files of a payload.
fn payload() -> FileSelection {
    let directories = ["manifests", "release-manifests"].map(str::to_owned).to_vec();
    let (file_size_max, size_max) = (1 << 20, 2 << 20);
    FileSelection { directories, is_deep: false, file_size_max, size_max, noun: "payload" }
}

fn read(layers: impl IntoIterator<Item = Vec<u8>>) -> String {
    read_selected(payload(), layers)
}

fn read_selected(selection: FileSelection, layers: impl IntoIterator<Item = Vec<u8>>) -> String {
    let mut files = Files::new(selection);
    for layer in layers {
        if let Err(error) = files.add_stream(Path::new("layer"), layer.as_slice()) {
            return error.to_string();
        }
    }
    files.into_files().into_keys().collect::<Vec<_>>().join(" ")
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

#[test]
fn a_deep_selection_has_the_directories_inside_of_it() {
    let selection = |directory: &str| FileSelection {
        directories: vec![directory.to_owned()],
        is_deep: true,
        ..payload()
    };
    let first: &[&str] = &["configs/a/x", "configs/a/y", "configs/b", "etc/passwd", "configs.txt"];
    let layer = |names: &[&str]| {
        let entries: Vec<_> = names
            .iter()
            .map(|name| match name.ends_with('/') {
                true => (EntryType::Directory, *name, &b""[..]),
                false => (EntryType::Regular, *name, &b"x"[..]),
            })
            .collect();
        archive(&entries)
    };
    // For `directory`, first the layer above and a second one.
    for (directory, second, left) in [
        ("configs", &[][..], "configs/a/x configs/a/y configs/b"),
        ("configs/a", &[], "configs/a/x configs/a/y"),
        ("", &[], "configs.txt configs/a/x configs/a/y configs/b etc/passwd"),
        ("configs", &["configs/.wh.a"], "configs/b"),
        ("configs", &["configs/.wh.a", "configs/a/z"], "configs/a/z configs/b"),
        ("configs", &["configs/a/.wh..wh..opq"], "configs/b"),
        ("configs/a", &["configs/.wh..wh..opq"], ""),
        ("configs/a", &[".wh.configs"], ""),
        ("configs/a", &[".wh.etc", "configs/.wh.b"], "configs/a/x configs/a/y"),
        // A file instead of a directory, and a directory instead of a file.
        ("configs", &["configs/a"], "configs/a configs/b"),
        ("configs", &["configs/b/", "configs/b/c"], "configs/a/x configs/a/y configs/b/c"),
        ("configs", &["configs/a/"], "configs/a/x configs/a/y configs/b"),
        // What leads upwards leads nowhere.
        ("configs", &["configs/../configs/c", "../configs/d"], "configs/a/x configs/a/y configs/b"),
    ] {
        let read = read_selected(selection(directory), [layer(first), layer(second)]);
        assert_eq!(read, left, "{directory:?} {second:?}");
    }
    let links = [("configs", "configs/a"), ("configs", "configs/a/b"), ("configs/a/b", "configs")];
    for (directory, link) in links {
        let layer = archive(&[(EntryType::Symlink, link, b"")]);
        let error = read_selected(selection(directory), [layer]);
        assert!(error.contains("a payload has no links"), "{link}: {error}");
    }
}

#[test]
fn files_are_bounded_one_by_one_and_together() {
    let megabyte = vec![b'x'; 1 << 20];
    let large = vec![b'x'; (1 << 20) + 1];
    let file = |name, bytes| archive(&[(EntryType::Regular, name, bytes)]);
    let error = read([file("manifests/a", &large)]);
    assert_eq!(error, "layer: manifests/a: larger than 1 MiB");
    // In all layers together, also of what is replaced.
    let error = read([0; 3].map(|_| file("manifests/a", &megabyte)));
    assert_eq!(error, "layer: manifests/a: the files of the payload are larger than 2 MiB");
}
