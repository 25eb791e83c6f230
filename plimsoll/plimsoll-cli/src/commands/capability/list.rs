//! `plimsoll capability list`: a line for each capability.

use std::io::Write;

use plimsoll_content::capability::CURRENT;

use crate::arguments::capability::Subject;
use crate::render::capability::Description;
use crate::render::format::Format;
use crate::render::table;

pub(super) fn run(subject: &Subject, format: &Format, out: &mut dyn Write) -> anyhow::Result<()> {
    let all: Vec<Description<'_>> =
        subject.names().into_iter().map(|name| Description::of(name, subject)).collect();
    if format.write(&all, out)? {
        return Ok(());
    }
    let row = |it: &Description<'_>| {
        let by_default = if it.sets.contains(&CURRENT) { "yes" } else { "no" };
        let mut row = vec![it.name.to_owned()];
        row.push(if subject.cluster.is_some() { it.state() } else { by_default }.to_owned());
        row.extend(it.manifests.map(|count| count.to_string()));
        row.push(dash(&it.requires.join(",")));
        row.push(it.description.to_owned());
        row
    };
    let mut headings = vec!["NAME"];
    headings.push(if subject.cluster.is_some() { "ENABLED" } else { "DEFAULT" });
    headings.extend(subject.payload.is_some().then_some("MANIFESTS"));
    headings.extend(["REQUIRES", "DESCRIPTION"]);
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    table::print(out, &headings, &rows)?;
    Ok(())
}

fn dash(text: &str) -> String {
    if text.is_empty() { "-" } else { text }.to_owned()
}
