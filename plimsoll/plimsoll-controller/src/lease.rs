//! Leadership by Lease: one controller writes, others wait (CV-30.1).
//!
//! A lease is taken when it has no holder, or its holder is us or has not renewed it for its
//! whole duration by our own clock; times of other machines are never compared. One that is deleted is
//! made again by its holder; those who saw it held wait as long as if it were there.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::{Api, Client};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::clock::SharedClock;
use crate::error::Error;
use crate::fence::fenced;
use crate::write::Writer;

/// How long a lease holds without renewal: as Kubernetes' own controllers.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How often the holder renews it.
pub(crate) const LEASE_RENEWAL: Duration = Duration::from_secs(5);
/// How long the holder continues without having renewed it: less than others wait, so that it has
/// stopped when they begin.
pub(crate) const RENEWAL_DEADLINE: Duration = Duration::from_secs(10);
/// How often others look whether it has become free.
const LEASE_RETRY: Duration = Duration::from_secs(2);
/// Namespace of the lease: there on every cluster.
pub(crate) const LEASE_NAMESPACE: &str = "kube-system";
/// Name of the lease of the controller of releases.
pub(crate) const LEASE_NAME: &str = "plimsoll";
/// Name of the lease of the controller of Operators.
pub(crate) const OPERATORS_LEASE_NAME: &str = "plimsoll-operators";
/// Name of the lease of the controller of MaintenanceWindows.
pub(crate) const WINDOWS_LEASE_NAME: &str = "plimsoll-windows";

/// How controllers make sure that only one of them writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// By a Lease, under this identity.
    Lease(String),
    /// There is only this one: an embedded cluster.
    Alone,
}

/// Waits for the leadership, and works as long as it lasts: on a client that writes nothing once it is
/// lost, until the token that the work gets is cancelled.
///
/// # Errors
///
/// Those of the work, and [`Error::LeaseLost`].
pub(crate) async fn leading<F: Future<Output = Result<(), Error>>>(
    client: Client,
    clock: SharedClock,
    name: &'static str,
    leadership: &Leadership,
    stop: &CancellationToken,
    work: impl FnOnce(Client, CancellationToken) -> F,
) -> Result<(), Error> {
    let leading = stop.child_token();
    let mut client = client;
    let keeper = match leadership {
        Leadership::Alone => None,
        Leadership::Lease(identity) => {
            let held = acquire(client.clone(), clock, name, identity.clone(), stop).await;
            let Some(held) = held else { return Ok(()) };
            let released = CancellationToken::new();
            let ended = leading.clone();
            let stop = released.clone();
            let fence = CancellationToken::new();
            client = fenced(client, fence.clone());
            let task = tokio::spawn(async move {
                let lost = held.keep(stop).await;
                if lost != LeaseLoss::Released {
                    fence.cancel();
                }
                ended.cancel();
                lost
            });
            Some((task, released))
        }
    };
    let ended = work(client, leading).await;
    if let Some((task, released)) = keeper {
        released.cancel();
        if let Ok(LeaseLoss::Taken | LeaseLoss::Expired) = task.await {
            return Err(Error::LeaseLost);
        }
    }
    match ended {
        Err(Error::Stopped) => Ok(()),
        other => other,
    }
}

/// A lease that is held until [`Held::release`].
pub(crate) struct Held {
    keeper: Keeper,
    lease: Lease,
    renewed: Instant,
}

#[derive(Clone)]
struct Keeper {
    client: Client,
    writer: Writer,
    clock: SharedClock,
    /// Name of the lease.
    name: &'static str,
    identity: String,
}

/// Waits until the lease is ours; `None` when stopped before.
pub(crate) async fn acquire(
    client: Client,
    clock: SharedClock,
    name: &'static str,
    identity: String,
    stop: &CancellationToken,
) -> Option<Held> {
    let keeper = Keeper { writer: Writer::new(client.clone()), client, clock, name, identity };
    // What was last seen of another holder's lease, and since when it has been so.
    let mut seen: Option<(Option<String>, Instant)> = None;
    let mut is_logged = false;
    loop {
        let requested = Instant::now();
        match keeper.try_acquire(&mut seen).await {
            Ok(Some(lease)) => {
                return Some(Held { keeper, lease, renewed: requested });
            }
            Ok(None) if !is_logged => {
                tracing::info!("another controller holds the lease; waiting for it");
                is_logged = true;
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "could not take the lease; trying again"),
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return None,
            () = sleep(LEASE_RETRY) => {}
        }
    }
}

impl Held {
    /// Renews the lease until stopped, then releases it. Returns early when it is lost:
    /// another process took it, or it could not be renewed in time.
    pub(crate) async fn keep(mut self, stop: CancellationToken) -> LeaseLoss {
        let mut pause = LEASE_RENEWAL;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    self.release().await;
                    return LeaseLoss::Released;
                }
                () = sleep(pause) => {}
            }
            let (began, deadline) = (Instant::now(), self.renewed + RENEWAL_DEADLINE);
            // The time counts from the request: a late response is of no use.
            let Ok(renewed) = timeout_at(deadline, self.keeper.renew(&self.lease)).await else {
                return LeaseLoss::Expired;
            };
            match renewed {
                Ok(lease) => {
                    self.lease = lease;
                    self.renewed = began;
                    pause = LEASE_RENEWAL;
                }
                // A deleted lease is answered with either, by the server's version.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                    match timeout_at(deadline, self.reload()).await {
                        Ok(Ok(Reloaded::Ours(lease))) => self.lease = *lease,
                        Ok(Ok(Reloaded::Others)) => return LeaseLoss::Taken,
                        Ok(Err(error)) => {
                            tracing::debug!(%error, "could not read the lease; trying again");
                            pause = LEASE_RETRY.min(deadline - Instant::now());
                            continue;
                        }
                        Err(_) => return LeaseLoss::Expired,
                    }
                    pause = Duration::ZERO;
                }
                Err(error) => {
                    tracing::debug!(%error, "could not renew the lease; trying again");
                    if Instant::now() >= deadline {
                        return LeaseLoss::Expired;
                    }
                    pause = LEASE_RETRY.min(deadline - Instant::now());
                }
            }
        }
    }

    /// The lease as it is now; one that was deleted is made again.
    async fn reload(&self) -> Result<Reloaded, kube::Error> {
        let Some(lease) = self.keeper.api().get_opt(self.keeper.name).await? else {
            tracing::warn!("the lease was deleted; it is made again");
            return match self.keeper.write(None).await {
                // Another controller was first.
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(Reloaded::Others),
                made => made.map(|lease| Reloaded::Ours(Box::new(lease))),
            };
        };
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
        Ok(match holder == Some(&self.keeper.identity) {
            true => Reloaded::Ours(Box::new(lease)),
            false => Reloaded::Others,
        })
    }

    async fn release(&self) {
        let mut lease = self.lease.clone();
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
        }
        if let Err(error) = self.keeper.writer.write_lease(LEASE_NAMESPACE, &lease).await {
            tracing::debug!(%error, "could not give the lease back; it runs out by itself");
        }
    }
}

/// Whose a lease is that could not be renewed.
enum Reloaded {
    Ours(Box<Lease>),
    Others,
}

/// Why a lease is no longer held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseLoss {
    /// Given back on purpose.
    Released,
    /// Another process has it.
    Taken,
    /// It could not be renewed in time.
    Expired,
}

impl Keeper {
    fn api(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), LEASE_NAMESPACE)
    }

    async fn try_acquire(
        &self,
        seen: &mut Option<(Option<String>, Instant)>,
    ) -> Result<Option<Lease>, kube::Error> {
        let current = self.api().get_opt(self.name).await?;
        let Some(current) = current else {
            // Deleted while it was held: the holder makes it again, or stops in time.
            let is_held = seen.as_ref().is_some_and(|(_, since)| since.elapsed() <= LEASE_DURATION);
            return if is_held { Ok(None) } else { self.write(None).await.map(Some) };
        };
        let spec = current.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        let version = current.metadata.resource_version.clone();
        if holder.is_empty() || holder == self.identity {
            return self.write(Some(&current)).await.map(Some);
        }
        match seen {
            Some((before, since)) if *before == version => {
                let seconds = spec.lease_duration_seconds.unwrap_or_default().max(1);
                let duration = Duration::from_secs(seconds.unsigned_abs().into());
                if since.elapsed() > duration {
                    return self.write(Some(&current)).await.map(Some);
                }
            }
            _ => *seen = Some((version, Instant::now())),
        }
        Ok(None)
    }

    async fn renew(&self, lease: &Lease) -> Result<Lease, kube::Error> {
        let mut lease = lease.clone();
        if let Some(spec) = &mut lease.spec {
            spec.renew_time = Some(MicroTime(self.now()));
        }
        self.writer.write_lease(LEASE_NAMESPACE, &lease).await
    }

    async fn write(&self, current: Option<&Lease>) -> Result<Lease, kube::Error> {
        let before = current.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let again = before.holder_identity.as_deref() == Some(self.identity.as_str());
        let now = MicroTime(self.now());
        let transitions = before.lease_transitions.unwrap_or_default();
        let lease = Lease {
            metadata: current.map_or_else(
                || ObjectMeta { name: Some(self.name.to_owned()), ..ObjectMeta::default() },
                |lease| lease.metadata.clone(),
            ),
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
                acquire_time: if again { before.acquire_time } else { Some(now.clone()) },
                renew_time: Some(now),
                lease_transitions: Some(if again || current.is_none() {
                    transitions
                } else {
                    transitions + 1
                }),
                ..LeaseSpec::default()
            }),
        };
        self.writer.write_lease(LEASE_NAMESPACE, &lease).await
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

#[cfg(test)]
mod tests;
