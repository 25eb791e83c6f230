//! Serves an empty cluster: `cargo run --example serve -- 127.0.0.1:8080 kubeconfig`.
use std::error::Error;

use k8s_apiserver::{ApiServer, Options, kubeconfig, serve};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let file = arguments.next().unwrap_or_else(|| "kubeconfig".to_owned());
    let listener = TcpListener::bind(address).await?;
    let url = format!("http://{}", listener.local_addr()?);
    std::fs::write(file, kubeconfig(&url))?;
    let interrupted = async {
        // Without a signal handler the server ends with the process.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    serve(ApiServer::new(Options::default()), listener, interrupted).await?;
    Ok(())
}
