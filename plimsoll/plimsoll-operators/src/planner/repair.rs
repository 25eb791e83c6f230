//! Repair of requirements that are not satisfied: which Operators' requirements a plan has to satisfy, and
//! which it cannot.

use std::collections::BTreeSet;

use plimsoll_resolve::requirement::RequiredNames;
use plimsoll_resolve::{
    Bundle, CatalogPart, Expressions, Problem, Resolution, Solution, solve, solve_unexplained,
};

use super::{ChosenBundles, Outcome};
use crate::OperatorInputs;
use crate::installed::all_unmet;

/// The Operators with requirements that are not satisfied before a plan.
#[derive(Clone)]
pub(crate) struct Unmet {
    /// Those whose requirements are to be satisfied if that is possible.
    pub(crate) repaired: Vec<String>,
    /// Those whose requirements are left alone.
    pub(crate) ignored: BTreeSet<String>,
    /// Whether all of `repaired` have to be repaired, and none of them may be moved for that.
    pub(crate) is_strict: bool,
}

/// A solution, and the Operators whose requirements it does not satisfy although it should.
pub(crate) struct RepairedSolution {
    pub(crate) solution: Solution,
    pub(crate) unrepaired: BTreeSet<String>,
}

/// Returns the Operators with requirements that are not satisfied; `concerns` says which of them a plan is to
/// repair.
pub(crate) fn unmet(
    inputs: OperatorInputs<'_>,
    catalogs: &[CatalogPart],
    concerns: &dyn Fn(&str, &Bundle) -> bool,
) -> Unmet {
    let present = Outcome::new(inputs, catalogs, &ChosenBundles::new());
    let mut found = Unmet { repaired: Vec::new(), ignored: BTreeSet::new(), is_strict: false };
    for (name, bundle) in &present.bundles {
        if present.requirements(name).iter().all(|it| it.provider.is_some()) {
            continue;
        }
        match concerns(name, bundle) {
            true => found.repaired.push((*name).to_owned()),
            false => drop(found.ignored.insert((*name).to_owned())),
        }
    }
    found
}

/// Returns whether packages may satisfy a requirement of a bundle: they are required by name, or provide an API
/// that is.
pub(crate) fn may_satisfy(
    catalogs: &[CatalogPart],
    packages: &BTreeSet<&str>,
    bundle: &Bundle,
) -> bool {
    let RequiredNames { packages: names, apis, is_open } = RequiredNames::of(bundle);
    let of = catalogs.iter().flat_map(|it| &it.packages);
    let mut of = of.filter(|it| packages.contains(it.name.as_str())).flat_map(|it| &it.bundles);
    is_open
        || names.iter().any(|it| packages.contains(it))
        || (!apis.is_empty() && of.any(|it| it.provides.iter().any(|api| apis.contains(api))))
}

/// Solves a problem with as many repairs as are possible. `problem` returns it: the requirements of some
/// Operators, as they are installed, are ignored in it, and others stay as they are. An Operator is only moved
/// for its own repair if it cannot be repaired otherwise. `is_explained` is whether the explanation is needed if
/// there is no solution.
pub(crate) fn solve_with_repairs(
    problem: &dyn Fn(&BTreeSet<String>, &BTreeSet<String>) -> Problem,
    unmet: &Unmet,
    expressions: &dyn Expressions,
    is_explained: bool,
) -> Result<RepairedSolution, Resolution> {
    let is_final = unmet.is_strict || unmet.repaired.is_empty();
    let ignoring = |more: &BTreeSet<String>, is_explained: bool| {
        let ignored: BTreeSet<String> = unmet.ignored.union(more).cloned().collect();
        let stay: BTreeSet<String> =
            unmet.repaired.iter().filter(|it| !ignored.contains(*it)).cloned().collect();
        if !stay.is_empty() {
            match solve_unexplained(&problem(&ignored, &stay), expressions) {
                Resolution::Solved(solution) => return Ok(solution),
                conflict if unmet.is_strict => return Err(conflict),
                _ => {}
            }
        }
        let problem = problem(&ignored, &BTreeSet::new());
        let solved = match is_explained {
            true => solve(&problem, expressions),
            false => solve_unexplained(&problem, expressions),
        };
        match solved {
            Resolution::Solved(solution) => Ok(solution),
            other => Err(other),
        }
    };
    let conflict = match ignoring(&BTreeSet::new(), is_explained && is_final) {
        Ok(solution) => return Ok(RepairedSolution { solution, unrepaired: BTreeSet::new() }),
        Err(conflict) => conflict,
    };
    if is_final || matches!(conflict, Resolution::LimitExceeded) {
        return Err(conflict);
    }
    let mut unrepaired: BTreeSet<String> = unmet.repaired.iter().cloned().collect();
    let mut solution = ignoring(&unrepaired, is_explained)?;
    // Halves of those that cannot be repaired together, so that a few of many cost little.
    let mut groups = halves(&unmet.repaired);
    while let Some(group) = groups.pop() {
        let mut others = unrepaired.clone();
        others.retain(|it| !group.contains(it));
        match ignoring(&others, false) {
            Ok(repaired) => (solution, unrepaired) = (repaired, others),
            Err(_) => groups.extend(halves(group)),
        }
    }
    Ok(RepairedSolution { solution, unrepaired })
}

/// Returns the halves of several names, the second one first; nothing of a single one.
pub(crate) fn halves(names: &[String]) -> Vec<&[String]> {
    match names.split_at(names.len() / 2) {
        ([], _) => Vec::new(),
        (left, right) => vec![right, left],
    }
}

/// Returns a line for each Operator whose requirements are not satisfied in an outcome; `is_kept` is whether it is
/// pinned and stays for that.
pub(crate) fn unsatisfied(
    after: &Outcome<'_>,
    names: &BTreeSet<String>,
    is_kept: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let line = |name: &String| {
        let mut unmet = all_unmet(name, &after.requirements(name));
        if unmet.is_empty() {
            return None;
        }
        if is_kept(name) {
            let help = format!("`kubectl operator update {name}` may help");
            unmet.push(format!("{name} is pinned, and {help}"));
        }
        Some(format!("{name} stays unsatisfied: {}", unmet.join("; ")))
    };
    names.iter().filter_map(line).collect()
}

/// Returns whether an Operator has requirements that are not satisfied.
pub(crate) fn has_unmet(inputs: OperatorInputs<'_>, catalogs: &[CatalogPart]) -> bool {
    let is_declared = |name: &str, _: &Bundle| !inputs.operators[name].is_undeclared;
    !unmet(inputs, catalogs, &is_declared).repaired.is_empty()
}
