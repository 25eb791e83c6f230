//! What is read of a directory, and what is refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use super::{FILE_SIZE_MAX, read_directory};

/// A directory with both payload directories, prepared further, and what reading it says.
fn check(prepare: impl Fn(&Path), expected: &str) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("payload");
    for name in ["manifests", "release-manifests"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    prepare(&root);
    let text = match read_directory(&root) {
        Ok(files) => files
            .iter()
            .map(|file| format!("{}/{} {}", file.directory, file.name, file.bytes.len()))
            .collect::<Vec<_>>()
            .join("\n"),
        Err(errors) => errors.to_string(),
    };
    let real = fs::canonicalize(directory.path()).unwrap();
    assert_eq!(text.replace(real.to_str().unwrap(), "TMP"), expected);
}

#[test]
fn only_manifests_and_the_special_files_are_read() {
    check(
        |root| {
            fs::write(root.join("manifests/a.yaml"), "1").unwrap();
            fs::write(root.join("manifests/release-metadata"), "not here").unwrap();
            fs::write(root.join("release-manifests/release-metadata"), "22").unwrap();
            fs::write(root.join("release-manifests/image-references"), "333").unwrap();
            fs::write(root.join("release-manifests/b.json"), "4444").unwrap();
            fs::write(root.join("release-manifests/README.md"), "no").unwrap();
            fs::create_dir(root.join("release-manifests/c.yaml")).unwrap();
            fs::write(root.join("release-manifests/c.yaml/d.yaml"), "no").unwrap();
        },
        "manifests/a.yaml 1\nrelease-manifests/b.json 4\nrelease-manifests/image-references 3\nrelease-manifests/release-metadata 2",
    );
}

#[test]
fn links_may_lead_anywhere_within_the_payload() {
    check(
        |root| {
            fs::write(root.join("other"), "12345").unwrap();
            symlink("../other", root.join("manifests/a.yaml")).unwrap();
            symlink("..", root.join("manifests/b.yaml")).unwrap();
        },
        "manifests/a.yaml 5",
    );
}

#[test]
fn every_file_that_cannot_be_read_is_named() {
    check(
        |root| {
            fs::write(root.join("../secret"), "secret").unwrap();
            symlink("../../secret", root.join("manifests/a-outside.yaml")).unwrap();
            symlink("b-loop.yaml", root.join("manifests/b-loop.yaml")).unwrap();
            symlink("nowhere", root.join("manifests/c-dangling.yaml")).unwrap();
            symlink("/dev/zero", root.join("manifests/d-device.yaml")).unwrap();
            UnixListener::bind(root.join("manifests/e-socket.yaml")).unwrap();
            let huge = fs::File::create(root.join("manifests/f-huge.yaml")).unwrap();
            huge.set_len(FILE_SIZE_MAX + 1).unwrap();
            fs::remove_dir(root.join("release-manifests")).unwrap();
        },
        "7 files of the payload cannot be read\n  \
         manifests/a-outside.yaml: the symbolic link leads out of the payload directory, to TMP/secret\n  \
         manifests/b-loop.yaml: symbolic links form a loop\n  \
         manifests/c-dangling.yaml: the symbolic link leads nowhere\n  \
         manifests/d-device.yaml: the symbolic link leads out of the payload directory, to /dev/zero\n  \
         manifests/e-socket.yaml: a socket, not an ordinary file\n  \
         manifests/f-huge.yaml: larger than 32 MiB\n  \
         release-manifests: no such directory: a payload has the directories manifests and release-manifests",
    );
}

#[test]
fn a_manifest_whose_name_is_no_text_is_named() {
    use std::os::unix::ffi::OsStrExt as _;
    check(
        |root| {
            let name = std::ffi::OsStr::from_bytes(b"0000_10_a\xff.yaml");
            fs::write(root.join("manifests").join(name), "kind: X\n").unwrap();
            fs::write(root.join("manifests").join(std::ffi::OsStr::from_bytes(b"\xff.txt")), "")
                .unwrap();
        },
        "1 file of the payload cannot be read\n  \
         manifests/0000_10_a\u{fffd}.yaml: its name is not UTF-8; rename the file",
    );
}

#[test]
fn a_directory_that_leads_out_of_the_payload_is_refused() {
    check(
        |root| {
            fs::remove_dir(root.join("manifests")).unwrap();
            fs::create_dir(root.join("../elsewhere")).unwrap();
            symlink("../elsewhere", root.join("manifests")).unwrap();
            fs::remove_dir(root.join("release-manifests")).unwrap();
            fs::write(root.join("release-manifests"), "a file").unwrap();
        },
        "2 files of the payload cannot be read\n  \
         manifests: the symbolic link leads out of the payload directory, to TMP/elsewhere\n  \
         release-manifests: not a directory",
    );
}

#[test]
fn the_payload_itself_must_be_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let check = |name: &str, expected: &str| {
        let error = read_directory(&directory.path().join(name)).unwrap_err();
        assert_eq!(error.errors[0].cause.to_string(), expected);
    };
    fs::write(directory.path().join("file"), "").unwrap();
    symlink("loop", directory.path().join("loop")).unwrap();
    check("file", "not a directory");
    check("loop", "symbolic links form a loop");
    check("missing", "No such file or directory (os error 2)");
}
