//! The server through its clients.
use kube::Client;
use plimsoll_apiserver::{ApiServer, Options};

#[tokio::test]
async fn a_kube_client_runs_on_the_service() {
    let _client = Client::new(ApiServer::new(Options::default()), "default");
}
