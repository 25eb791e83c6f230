//! The columns of what the control plane is set up with.
use super::Cell::{At, Of};
use super::{AGE, Column, NAME, ONLY_AGE, boolean, integer, text};
use crate::http::table::cells::{extensions, services};

/// The columns of a kind, if it is one of these.
pub(super) fn columns_of(group: &str, kind: &str) -> Option<&'static [Column]> {
    Some(match (group, kind) {
        ("flowcontrol.apiserver.k8s.io", _) => return flow_control(kind),
        ("storage.k8s.io", _) => return storage(kind),
        ("resource.k8s.io", _) => return devices(kind),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            const {
                &[
                    NAME,
                    AGE,
                    text("SignerName", At("spec.signerName", "<none>")),
                    text("Requestor", At("spec.username", "")),
                    text("RequestedDuration", Of(services::request_duration)),
                    text("Condition", Of(services::request_condition)),
                ]
            }
        }
        ("certificates.k8s.io", "ClusterTrustBundle") => {
            const { &[NAME, text("SignerName", At("spec.signerName", ""))] }
        }
        ("networking.k8s.io", "IPAddress") => {
            const { &[NAME, text("ParentRef", Of(services::address_parent)), AGE] }
        }
        ("networking.k8s.io", "ServiceCIDR") => {
            const { &[NAME, text("CIDRs", Of(services::networks)), AGE] }
        }
        ("storagemigration.k8s.io", "StorageVersionMigration") => {
            const {
                &[
                    text("Name", At("metadata.name", "")),
                    text("Resource", Of(services::migrated_resource)),
                    text("Status", Of(services::migration_state)),
                ]
            }
        }
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => {
            const {
                &[
                    NAME,
                    integer("Mutations", Of(services::mutation_count)),
                    text("ParamKind", Of(extensions::policy_parameter_kind)),
                    AGE,
                ]
            }
        }
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding") => {
            const {
                &[
                    NAME,
                    text("PolicyName", At("spec.policyName", "")),
                    text("ParamRef", Of(extensions::policy_parameter)),
                    AGE,
                ]
            }
        }
        _ => return None,
    })
}

fn flow_control(kind: &str) -> Option<&'static [Column]> {
    Some(match kind {
        "FlowSchema" => {
            const {
                &[
                    NAME,
                    text("PriorityLevel", At("spec.priorityLevelConfiguration.name", "")),
                    text("MatchingPrecedence", At("spec.matchingPrecedence", "")),
                    text("DistinguisherMethod", At("spec.distinguisherMethod.type", "<none>")),
                    AGE,
                    text("MissingPL", Of(services::flow_schema_dangles)),
                ]
            }
        }
        "PriorityLevelConfiguration" => {
            const {
                &[
                    NAME,
                    text("Type", At("spec.type", "")),
                    text("NominalConcurrencyShares", Of(services::level_shares)),
                    text("Queues", Of(services::level_queues)),
                    text("HandSize", Of(services::level_hand_size)),
                    text("QueueLengthLimit", Of(services::level_queue_length)),
                    AGE,
                ]
            }
        }
        _ => return None,
    })
}

fn storage(kind: &str) -> Option<&'static [Column]> {
    Some(match kind {
        "CSIDriver" => {
            const {
                &[
                    NAME,
                    boolean("AttachRequired", Of(services::driver_attaches)),
                    boolean("PodInfoOnMount", Of(services::driver_wants_pod)),
                    boolean("StorageCapacity", Of(services::driver_tells_capacity)),
                    text("TokenRequests", Of(services::driver_tokens)),
                    boolean("RequiresRepublish", Of(services::driver_republishes)),
                    text("Modes", Of(services::driver_modes)),
                    AGE,
                ]
            }
        }
        "CSINode" => const { &[NAME, integer("Drivers", Of(services::node_drivers)), AGE] },
        "VolumeAttachment" => {
            const {
                &[
                    NAME,
                    Column { format: "name", ..text("Attacher", At("spec.attacher", "")) },
                    text("PV", At("spec.source.persistentVolumeName", "")),
                    text("Node", At("spec.nodeName", "")),
                    boolean("Attached", Of(services::attachment_is_attached)),
                    AGE,
                ]
            }
        }
        "VolumeAttributesClass" => const { &[NAME, text("DriverName", At("driverName", "")), AGE] },
        _ => return None,
    })
}

fn devices(kind: &str) -> Option<&'static [Column]> {
    Some(match kind {
        "DeviceClass" | "ResourceClaimTemplate" => ONLY_AGE,
        "ResourceClaim" => const { &[NAME, text("State", Of(services::claim_state)), AGE] },
        "ResourceSlice" => {
            const {
                &[
                    NAME,
                    text("Node", At("spec.nodeName", "")),
                    text("Driver", At("spec.driver", "")),
                    text("Pool", At("spec.pool.name", "")),
                    AGE,
                ]
            }
        }
        _ => return None,
    })
}
