//! Demands of OperatorHub.io: provider, maintainers, links, version, icon.

use super::text;
use crate::bundle::read::BundleManifest;
use crate::catalog::DefectCode;
use crate::diagnostic::Diagnostic;

/// Types of icons that consoles show.
const ICON_TYPES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/svg+xml"];

/// Upstream: github.com/operator-framework/api/pkg/validation/internal/operatorhubv2.go: validateHubCSVSpecV2
pub(super) fn operator_hub(csv: &BundleManifest<'_>, defects: &mut Vec<Diagnostic>) {
    let mut report = |field: &str, code: DefectCode, text: String| {
        defects.push(csv.defect(field, code, text));
    };
    let mut refuse = |field: &str, text: String| report(field, DefectCode::BundleFile, text);
    if csv.text("/spec/provider/name").trim().is_empty() {
        refuse("spec", "spec.provider.name is missing".to_owned());
    }
    for (index, it) in csv.list("/spec/maintainers").iter().enumerate() {
        let field = format!("spec.maintainers[{index}]");
        let (name, email) = (text(&it["name"]), text(&it["email"]));
        if name.is_empty() || email.is_empty() {
            refuse(&field, "a maintainer has a name and an email".to_owned());
        }
        if !email.is_empty() && !is_address(email) {
            refuse(&field, format!("`{email}` is not an address for email"));
        }
    }
    for (index, it) in csv.list("/spec/links").iter().enumerate() {
        let field = format!("spec.links[{index}]");
        let (name, url) = (text(&it["name"]), text(&it["url"]));
        if name.is_empty() || url.is_empty() {
            refuse(&field, "a link has a name and a url".to_owned());
        }
        if !url.is_empty() && !is_address_of_page(url) {
            refuse(&field, format!("`{url}` is not a URL: write it with its scheme"));
        }
    }
    let version = csv.text("/spec/version");
    if version.is_empty() || version == "0.0.0" {
        refuse("spec", "spec.version is missing".to_owned());
    }
    let icons = csv.list("/spec/icon");
    if icons.len() > 1 {
        refuse("spec.icon", format!("there are {} icons: only one is shown", icons.len()));
    }
    if let Some(icon) = icons.first() {
        let media_type = text(&icon["mediatype"]);
        if media_type.is_empty() || text(&icon["base64data"]).is_empty() {
            refuse("spec.icon[0]", "an icon has a mediatype and base64data".to_owned());
        }
        if !media_type.is_empty() && !ICON_TYPES.contains(&media_type) {
            let known = ICON_TYPES.join(", ");
            refuse("spec.icon[0]", format!("`{media_type}` is none of {known}"));
        }
    } else {
        report("spec", DefectCode::BundleAdvice, "spec.icon is missing".to_owned());
    }
}

/// Whether a text is a name with an address behind it, or an address.
fn is_address(text: &str) -> bool {
    let address = match text.rsplit_once('<') {
        Some((_, rest)) => rest.strip_suffix('>').unwrap_or_default(),
        None => text,
    };
    let is_part = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
    address.split_once('@').is_some_and(|(user, host)| is_part(user) && is_part(host))
}

/// Whether a text is an absolute URL or an absolute path.
fn is_address_of_page(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|it: char| it.is_ascii_alphabetic())
            && scheme.bytes().all(|it| it.is_ascii_alphanumeric() || b"+-.".contains(&it))
    };
    !text.contains(char::is_control)
        && (text.starts_with('/')
            || text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)))
}
