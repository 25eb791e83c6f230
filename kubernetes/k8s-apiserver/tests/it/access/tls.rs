//! Sockets: TLS with and without certificates of clients, plain HTTP, and the end of a listener.
use futures::StreamExt as _;
use k8s_apiserver::{
    AccessOptions, ApiServer, Authorization, ClusterSettings, Options, TlsCertificates, serve,
    serve_tls, serve_tls_with,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A listening server that can be shut down.
struct Listening {
    server: ApiServer,
    url: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn listen(tls: bool) -> Listening {
    listen_with(tls, Options::default()).await
}

async fn listen_with(tls: bool, options: Options) -> Listening {
    let server = ApiServer::new(options);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let scheme = if tls { "https" } else { "http" };
    let url = format!("{scheme}://{}", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = server.clone();
    let task = tokio::spawn(async move {
        let stopped = async { drop(stopped.await) };
        if tls {
            serve_tls(serving, listener, stopped).await.unwrap();
        } else {
            serve(serving, listener, stopped).await.unwrap();
        }
    });
    Listening { server, url, stop, task }
}

async fn client(kubeconfig: &str, change: impl FnOnce(&mut Kubeconfig)) -> Client {
    let mut kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    change(&mut kubeconfig);
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn the_kubeconfig_makes_an_administrator_of_its_user() {
    for tls in [true, false] {
        let listening = listen(tls).await;
        let client = client(&listening.server.kubeconfig(&listening.url), |_| {}).await;
        let namespaces = Api::<Namespace>::all(client).list(&ListParams::default()).await.unwrap();
        assert_eq!(namespaces.items.len(), 4);
    }
}

#[tokio::test]
async fn over_tls_a_client_without_credentials_is_anonymous_and_may_not_much() {
    let listening = listen(true).await;
    let kubeconfig = listening.server.kubeconfig(&listening.url);
    let client = client(&kubeconfig, |kubeconfig| {
        for named in &mut kubeconfig.auth_infos {
            named.auth_info = None;
        }
    })
    .await;
    assert_eq!(client.apiserver_version().await.unwrap().minor, "37");
    let refused = Api::<Namespace>::all(client).list(&ListParams::default()).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("User \"system:anonymous\" cannot list resource"), "{text}");
}

#[tokio::test]
async fn over_tls_no_client_is_anonymous_where_everything_is_allowed() {
    let access =
        AccessOptions { authorization: Authorization::AlwaysAllow, ..AccessOptions::default() };
    let listening = listen_with(true, Options { access, ..Options::default() }).await;
    let kubeconfig = listening.server.kubeconfig(&listening.url);
    let stranger = client(&kubeconfig, |kubeconfig| {
        for named in &mut kubeconfig.auth_infos {
            named.auth_info = None;
        }
    })
    .await;
    let refused = Api::<Namespace>::all(stranger).list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains("Unauthorized"), "{refused}");
    let administrator = client(&kubeconfig, |_| {}).await;
    assert!(Api::<Namespace>::all(administrator).list(&ListParams::default()).await.is_ok());
}

#[tokio::test]
async fn the_certificate_is_that_of_the_service_inside_the_cluster() {
    let [own, other] = ["10.96.0.0/16", "10.0.0.0/24"].map(|range| {
        let settings =
            ClusterSettings { service_range: range.parse().unwrap(), ..ClusterSettings::default() };
        Options { settings, ..Options::default() }
    });
    for (options, address, is_valid) in
        [(own, "10.96.0.1", true), (other.clone(), "10.96.0.1", false), (other, "10.0.0.1", true)]
    {
        let listening = listen_with(true, options).await;
        let client = client(&listening.server.kubeconfig(&listening.url), |kubeconfig| {
            let cluster = kubeconfig.clusters[0].cluster.as_mut().unwrap();
            cluster.tls_server_name = Some(address.to_owned());
        })
        .await;
        assert_eq!(client.apiserver_version().await.is_ok(), is_valid, "{address}");
    }
}

#[tokio::test]
async fn the_authority_is_the_one_that_namespaces_tell_of() {
    let server = ApiServer::new(Options::default());
    let maps = Api::<ConfigMap>::namespaced(Client::new(server.clone(), "default"), "default");
    let map = maps.get("kube-root-ca.crt").await.unwrap();
    assert_eq!(map.data.unwrap()["ca.crt"], server.certificate_authority());
}

#[tokio::test]
async fn the_end_of_a_listener_ends_watches() {
    for tls in [true, false] {
        let listening = listen(tls).await;
        let client = client(&listening.server.kubeconfig(&listening.url), |_| {}).await;
        let namespaces = Api::<Namespace>::all(client);
        let watch = namespaces.watch(&WatchParams::default(), "0").await.unwrap();
        let mut watch = std::pin::pin!(watch);
        assert!(watch.next().await.unwrap().is_ok(), "a watch begins with what there is");
        listening.stop.send(()).unwrap();
        while watch.next().await.is_some() {}
        listening.task.await.unwrap();
    }
}

#[tokio::test]
async fn certificates_of_clients_can_be_of_another_authority() {
    let [own, other] = [1, 2].map(|seed| ApiServer::new(Options { seed, ..Options::default() }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let (serving, authority) = (own.clone(), other.certificate_authority().to_owned());
    tokio::spawn(async move {
        let outside = TlsCertificates {
            client_authorities: Some(authority.as_bytes()),
            ..TlsCertificates::default()
        };
        serve_tls_with(serving, listener, outside, std::future::pending()).await.unwrap();
    });
    let of_other = Kubeconfig::from_yaml(&other.kubeconfig(&url)).unwrap().auth_infos;
    let list =
        async |client: Client| Api::<Namespace>::all(client).list(&ListParams::default()).await;
    let admitted =
        client(&own.kubeconfig(&url), |kubeconfig| kubeconfig.auth_infos = of_other).await;
    assert_eq!(list(admitted).await.unwrap().items.len(), 4);
    let stranger = client(&own.kubeconfig(&url), |_| {}).await;
    assert!(list(stranger).await.is_err(), "the cluster's own authority is not asked");
}
