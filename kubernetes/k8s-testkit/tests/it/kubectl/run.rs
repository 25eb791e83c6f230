//! Runs the commands of a script.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use k8s_apiserver::{AccessOptions, Options, StaticToken, UserInfo, serve_tls};
use k8s_testkit::{ClusterKind, TestCluster};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::normalize::normalize;
use super::script::{Script, Step};

/// When a command is given up, in seconds.
const COMMAND_TIMEOUT: &str = "600";

/// The name, the uid and the token of the administrator.
const ADMINISTRATOR: &str = "plimsoll-test";

/// The program.
pub(super) struct Kubectl {
    directory: PathBuf,
}

/// Where `kubectl` finds a server.
pub(super) struct Server {
    kubeconfig: String,
    /// Serves the embedded server while a script runs.
    listening: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(task) = &self.listening {
            task.abort();
        }
    }
}

impl Server {
    /// The server of a cluster; the embedded one begins to listen.
    pub(super) async fn of(cluster: &TestCluster) -> Self {
        if let Some(path) = cluster.kubeconfig() {
            let kubeconfig = std::fs::read_to_string(path).expect("the kubeconfig can be read");
            return Self { kubeconfig, listening: None };
        }
        let server = cluster.server().expect("a cluster without a kubeconfig is embedded").clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let text = server.kubeconfig(&format!("https://{address}"));
        let text = text.replace("\"embedded\"", "\"control-plane\"");
        let mut kubeconfig: Value = serde_json::from_str(&text).expect("it is written as JSON");
        kubeconfig["users"][0]["user"] = json!({"token": ADMINISTRATOR});
        let listening = tokio::spawn(async move {
            let _ = serve_tls(server, listener, std::future::pending()).await;
        });
        Self { kubeconfig: kubeconfig.to_string(), listening: Some(listening) }
    }
}

/// A cluster whose administrator is the one of a real control plane for tests.
pub(super) async fn start(kind: ClusterKind) -> TestCluster {
    if kind == ClusterKind::ControlPlane {
        return kind.start().await.expect("a cluster starts");
    }
    let mut user = UserInfo::new(ADMINISTRATOR, ["system:masters"]);
    user.uid = ADMINISTRATOR.to_owned();
    let tokens = vec![StaticToken { token: ADMINISTRATOR.to_owned(), user }];
    let access = AccessOptions { tokens, ..AccessOptions::default() };
    TestCluster::embedded_with(Options { access, ..Options::default() })
}

impl Kubectl {
    /// The one beside the control plane: others, of other versions, print something else.
    pub(super) fn find() -> Option<Self> {
        let directory = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from)?;
        directory.join("kubectl").is_file().then_some(Self { directory })
    }

    /// What the commands of a script print, one after the other, made comparable.
    pub(super) async fn run(&self, server: &Server, script: &Script) -> Vec<String> {
        let home = tempfile::tempdir().expect("a directory can be made");
        let config = home.path().join("config");
        std::fs::write(&config, &server.kubeconfig).expect("the kubeconfig can be written");
        let mut printed = Vec::new();
        for step in &script.steps {
            match step {
                Step::Comment(_) => {}
                Step::File { name, text } => {
                    let path = home.path().join(name);
                    let directory = path.parent().expect("a file lies in a directory");
                    std::fs::create_dir_all(directory).expect("a directory can be made");
                    std::fs::write(path, text).expect("a file can be written");
                }
                Step::Command { line, .. } => {
                    let command = self.command(line, home.path(), &config);
                    let text = tokio::task::spawn_blocking(move || output(command))
                        .await
                        .expect("a command runs to its end");
                    printed.push(normalize(&text, home.path()));
                }
            }
        }
        printed
    }

    fn command(&self, line: &str, home: &Path, config: &Path) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("timeout");
        command
            .args([COMMAND_TIMEOUT, "sh", "-c", &format!("({line}) 2>&1")])
            .current_dir(home)
            .env_clear()
            .env("PATH", format!("{}:{path}", self.directory.display()))
            .env("HOME", home)
            .env("KUBE_EDITOR", "false")
            .env("KUBECONFIG", config)
            .stdin(Stdio::null());
        command
    }
}

fn output(mut command: Command) -> String {
    let output = command.output().expect("there is a shell");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if !output.status.success() {
        text.push_str(&format!("[exit {}]\n", output.status.code().unwrap_or(-1)));
    }
    text
}
