//! Catalogs of any size, the same each time: every package depends on two later ones.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Result;

/// Writes a catalog.
pub(crate) fn write(packages: usize, versions: usize, path: &Path) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for package in 0..packages {
        let name = format!("pkg-{package:05}");
        writeln!(out, r#"{{"schema":"olm.package","name":"{name}","defaultChannel":"stable"}}"#)?;
        write!(
            out,
            r#"{{"schema":"olm.channel","package":"{name}","name":"stable","entries":[{{"name":"{name}.v1.0.0"}}"#
        )?;
        for minor in 1..versions {
            let before = minor - 1;
            write!(out, r#",{{"name":"{name}.v1.{minor}.0","replaces":"{name}.v1.{before}.0"}}"#)?;
        }
        writeln!(out, "]}}")?;
        for minor in 0..versions {
            bundle(&mut out, package, packages, minor)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn bundle(
    out: &mut impl std::io::Write,
    package: usize,
    packages: usize,
    minor: usize,
) -> Result<()> {
    let name = format!("pkg-{package:05}");
    let group = format!("{name}.example.com");
    let mut properties = vec![format!(
        r#"{{"type":"olm.package","value":{{"packageName":"{name}","version":"1.{minor}.0"}}}}"#
    )];
    for kind in 0..=package % 3 {
        properties.push(format!(
            r#"{{"type":"olm.gvk","value":{{"group":"{group}","kind":"Kind{kind}","version":"v1"}}}}"#
        ));
    }
    if package + 7 < packages {
        let (one, other) = (package + 1, package + 7);
        properties.push(format!(
            r#"{{"type":"olm.package.required","value":{{"packageName":"pkg-{one:05}","versionRange":">=1.1.0 <2.0.0"}}}}"#
        ));
        properties.push(format!(
            r#"{{"type":"olm.gvk.required","value":{{"group":"pkg-{other:05}.example.com","kind":"Kind0","version":"v1"}}}}"#
        ));
    }
    let properties = properties.join(",");
    writeln!(
        out,
        r#"{{"schema":"olm.bundle","name":"{name}.v1.{minor}.0","package":"{name}","image":"registry.example.com/{name}:v1.{minor}.0","properties":[{properties}]}}"#
    )?;
    Ok(())
}
