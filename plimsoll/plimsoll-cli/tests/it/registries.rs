//! Releases through a real registry: `PLIMSOLL_REGISTRY` names the program `registry` of the
//! distribution project (`docker-registry` in Debian).

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use k8s_testkit::prerequisites::required;
use plimsoll_source::read_directory;

/// A registry that runs until it is dropped.
struct Registry {
    process: Child,
    host: String,
}

impl Registry {
    /// Starts the program with what is stored in a directory.
    fn start(program: &Path, directory: &Path) -> Self {
        let settings = directory.join("settings.yml");
        let text = format!(
            "version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\n\
             http: {{addr: '127.0.0.1:0'}}\n",
            directory.join("data").display()
        );
        fs::write(&settings, text).expect("a file");
        let mut process = Command::new(program)
            .arg("serve")
            .arg(&settings)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the registry runs");
        let mut log = BufReader::new(process.stderr.take().expect("it is piped")).lines();
        let host = log
            .by_ref()
            .map(|line| line.expect("its log is text"))
            .find_map(|line| {
                let address = line.split_once("listening on ")?.1;
                Some(address.split(['"', ' ']).next()?.to_owned())
            })
            .expect("it says where it listens");
        // A pipe that is not read would block it.
        std::thread::spawn(move || log.for_each(drop));
        Self { process, host }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // One that ended by itself is as well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the program; its output, or its errors if it fails.
fn run(home: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.env_clear().env("HOME", home).args(arguments);
    let output = command.output().expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[test]
fn a_release_crosses_from_one_registry_to_another_by_a_directory() {
    let Some(program) = required("PLIMSOLL_REGISTRY").map(PathBuf::from) else { return };
    let example =
        std::path::absolute("../../examples/payloads/v1.0.0").expect("a working directory");
    let payload = std::env::var_os("PLIMSOLL_PAYLOAD").filter(|it| !it.is_empty());
    let payload = payload.map_or(example, PathBuf::from);
    let payload_text = payload.to_str().expect("it is text");
    let here = tempfile::tempdir().expect("a directory");
    let path = |name: &str| here.path().join(name).to_str().expect("it is text").to_owned();
    let directories = [path("one"), path("other")];
    for directory in &directories {
        fs::create_dir(directory).expect("a directory");
    }
    let ok = |arguments: &[&str]| run(here.path(), arguments).expect("it succeeds");

    // Out of one registry, which is gone afterwards.
    let registry = Registry::start(&program, Path::new(&directories[0]));
    let repository = format!("{}/platform/release", registry.host);
    let pushed = ok(&["release", "push", payload_text, &repository]);
    let (reference, digest) = pushed
        .strip_prefix(&format!("pushed {repository}"))
        .and_then(|it| it.split_once('@'))
        .expect("it says what was pushed");
    let tag = reference.trim_start_matches(':').to_owned();
    let missing = run(here.path(), &["release", "info", &format!("{repository}:none")]);
    assert_eq!(
        missing,
        Err(format!(
            "error: failed to load release `{repository}:none`: the registry has no image \
             `{repository}:none`; the repository has {tag}"
        ))
    );
    let layout = format!("oci:{}", path("layout"));
    let copied = ok(&["release", "mirror", &repository, &layout]);
    assert_eq!(copied, format!("copied {repository}:{tag}@{digest}"));
    drop(registry);

    // And into another one.
    let registry = Registry::start(&program, Path::new(&directories[1]));
    let repository = format!("{}/copy", registry.host);
    let copied = ok(&["release", "mirror", &layout, &repository]);
    assert_eq!(copied, format!("copied {repository}:{tag}@{digest}"));
    let listed = ok(&["release", "list", &repository]);
    assert!(listed.contains(&format!("{repository}@{digest}")), "{listed}");
    let by_digest = format!("{repository}@{digest}");
    ok(&["release", "pull", &by_digest, &path("pulled")]);
    let files = |path: &Path| read_directory(path).expect("it can be read");
    assert!(files(Path::new(&path("pulled"))) == files(&payload), "the files are the same");
    let difference = ok(&["release", "diff", payload_text, &format!("{repository}:{tag}")]);
    let summary = difference.lines().last().unwrap_or_default();
    assert!(summary.contains("0 added, 0 removed, 0 changed"), "{difference}");
}
