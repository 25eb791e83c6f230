//! registry+v1 bundles: what is in them, what is wrong with them, the objects that install them, and
//! what replacing their definitions would break.
//!
//! [`load`] makes a [`Bundle`] of the files of a bundle directory, [`read_config`] reads what an
//! installation configures, [`render`](render()) makes the objects, and [`revision_objects`] those that
//! an Operator is installed with. Each ends in a value or in everything that is wrong.

mod bundle;
mod config;
pub mod crd_safety;
mod csv;
mod go_json;
mod install;
mod installable;
mod load;
mod render;
mod targets;
mod validate;

pub use plimsoll_api::olm::CertificateProvider;

pub use bundle::{Bundle, BundleContent, BundleObject, RegistryContent};
pub use config::{
    BundleConfig, DeploymentConfig, config_schema, read_config, read_deployment_config,
};
pub use csv::{
    ClusterServiceVersion, InstallMode, OwnedApiService, PolicyRule, StrategyDeployment,
    StrategyPermission, WebhookDescription, WebhookKind,
};
pub use install::{InstallRequest, RevisionObjects, revision_objects};
pub use installable::rendering_defects;
pub use load::load;
pub use render::{
    CA_ANNOTATION, RenderOptions, RenderedBundle, SERVING_ANNOTATION, ServingCertificate,
    object_key, render, serving_certificates,
};
pub use validate::validate;
