//! Serving over a socket: plain HTTP/1.1, and HTTP/2 by prior knowledge.
use std::io;
use std::sync::Arc;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::ApiServer;

/// Serves `server` on `listener` until `shutdown` completes.
///
/// Watches are cut short then, as a kube-apiserver that ends does it: clients reconnect.
///
/// # Errors
/// When the listener fails for good; an error of one connection only ends that connection.
pub async fn serve(
    server: ApiServer,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let (stop, stopped) = watch::channel(());
    let stopped = Arc::new(stopped);
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) if is_of_one_connection(&error) => continue,
                Err(error) => return Err(error),
            },
            _ = connections.join_next(), if !connections.is_empty() => continue,
            () = &mut shutdown => break,
        };
        // A small answer must not wait for the acknowledgement of the one before it.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "could not turn off Nagle's algorithm");
        }
        let service = TowerToHyperService::new(server.clone());
        let mut stopped = (*stopped).clone();
        connections.spawn(async move {
            let builder = auto::Builder::new(TokioExecutor::new());
            let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
            tokio::select! {
                ended = connection => if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                },
                _ = stopped.changed() => {}
            }
        });
    }
    drop(stop);
    connections.shutdown().await;
    Ok(())
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}
