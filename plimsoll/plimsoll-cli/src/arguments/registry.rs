//! How registries are reached, on every command line that takes a reference to one.

use std::path::PathBuf;

use clap::Args;
use plimsoll_source::registry::{ImageReference, Registry, RegistrySettings, RegistryStore};

use super::catalog::cache_directory;

/// Directory of the image layout, in the cache directory, with what was pulled.
const IMAGES: &str = "images";

/// How registries are reached.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Registries")]
pub struct RegistryArguments {
    /// File with credentials for registries, in the format of docker's config.json; without it,
    /// those of podman and docker are looked for
    #[arg(long, value_name = "FILE")]
    pub registry_auth: Option<PathBuf>,
    /// File with certificates of further authorities to trust for registries, as PEM
    #[arg(long, value_name = "FILE")]
    pub registry_ca: Option<PathBuf>,
    /// Speak plain HTTP with registries; with those on this machine it is tried anyway
    #[arg(long)]
    pub plain_http: bool,
    /// File with mirrors of registries, in the format of registries.conf; without it, those of
    /// podman are looked for
    #[arg(long, value_name = "FILE")]
    pub registries_conf: Option<PathBuf>,
}

impl RegistryArguments {
    /// A client with these settings.
    pub(crate) fn client(&self) -> Registry {
        Registry::new(RegistrySettings {
            auth_file: self.registry_auth.clone(),
            ca_file: self.registry_ca.clone(),
            plain_http: self.plain_http,
            registries_conf: self.registries_conf.clone(),
        })
    }

    /// The store of a repository, or of one image in it.
    pub(crate) fn store(&self, reference: &ImageReference) -> RegistryStore {
        let cache = cache_directory(IMAGES);
        RegistryStore::new(self.client(), reference.clone(), cache.as_deref())
    }
}
