//! Server-side apply: objects are made, and then changed twice.

use crate::load::{NAMESPACE, config_map, deployment, rate, send};
use crate::stage::Stage;
use crate::{Figure, compare};

/// Objects of each round.
const OBJECTS: usize = 400;

/// Applies to each of them.
const TIMES: usize = 3;

/// Requests under way at once.
const AT_ONCE: usize = 16;

pub(crate) async fn measure(stages: &[Stage]) -> Result<Vec<Figure>, anyhow::Error> {
    type Make = fn(&str, usize) -> String;
    let kinds: [(&str, String, Make); 2] = [
        ("server-side apply of ConfigMaps", format!("{NAMESPACE}/configmaps"), config_map),
        (
            "server-side apply of Deployments",
            "/apis/apps/v1/namespaces/default/deployments".to_owned(),
            deployment,
        ),
    ];
    let mut figures = Vec::new();
    for (what, path, make) in kinds {
        let figure = compare(stages, what, "/s", |stage, round| {
            let (client, path) = (stage.client.clone(), path.clone());
            rate(OBJECTS * TIMES, AT_ONCE, move |index| {
                let (client, path) = (client.clone(), path.clone());
                async move {
                    let name = format!("apply-{round}-{}", index % OBJECTS);
                    let path = format!("{path}/{name}?fieldManager=bench&force=true");
                    let body = make(&name, index / OBJECTS);
                    send(&client, "PATCH", &path, "application/apply-patch+yaml", body).await?;
                    Ok(())
                }
            })
        });
        figures.push(figure.await?);
    }
    Ok(figures)
}
