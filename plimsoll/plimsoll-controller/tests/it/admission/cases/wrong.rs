//! Manifests that are refused, whoever sends them, with what is said about them.

/// The classes beside the built-in ones.
pub(crate) const CLASSES: &[&str] = &[
    r#"{"metadata": {"name": "plain"}, "spec": {"controller": "example.com/c"}}"#,
    r#"{"metadata": {"name": "open"}, "spec": {"controller": "example.com/c",
        "schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"a": {"type": "string"}}}}}"#,
    r#"{"metadata": {"name": "tidy"}, "spec": {"controller": "example.com/c",
        "required": ["parameters.days"], "defaults": {"parameters.mode": "soft"},
        "schema": {"type": "object", "required": ["mode"], "properties": {
            "days": {"type": "integer"}, "mode": {"type": "string"}, "version": {"type": "string"}}}}}"#,
    r#"{"metadata": {"name": "backup"}, "spec": {"controller": "example.com/c", "aliases": ["backups"],
        "attributes": ["package", "dryRun"], "required": ["package"],
        "schema": {"type": "object", "required": ["target"], "properties": {
            "target": {"type": "string"},
            "keep": {"type": "boolean"},
            "copies": {"type": "integer", "minimum": 1, "maximum": 5},
            "ratio": {"type": "number"},
            "level": {"type": "string", "enum": ["low", "high"]},
            "tags": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
            "options": {"type": "object", "properties": {
                "mode": {"type": "string", "enum": ["full", "delta"]}}}}}}}"#,
];

/// A manifest: what is wrong with it, its kind, its spec, and a part of what is said.
pub(crate) type Wrong = (&'static str, &'static str, &'static str, &'static str);

/// What shows that the API server compares requests with their classes.
pub(crate) const COMPARED: Wrong = (
    "no value for a required attribute",
    "actions",
    r#"{"actionClass": "backup", "parameters": {"target": "a"}}"#,
    "class backup needs spec.package: write a value for it",
);
/// What shows that the webhook checks requests.
pub(crate) const CHECKED: Wrong = (
    "an item of another type",
    "actions",
    r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "tags": [1]}}"#,
    "spec.parameters.tags[0] is 1: write a text",
);

/// An Action that does not fit its class and that the controller requests in the name of Alice.
pub(crate) const OF_TEMPLATE: &str = r#"{"metadata": {"name": "of-template"}, "spec": {"actionClass": "plain", "package": "p",
    "requester": {"username": "alice", "groups": ["dev", "system:authenticated"]}}}"#;

/// Manifests that are accepted.
pub(crate) const RIGHT: &[(&str, &str)] = &[
    ("actions", r#"{"actionClass": "plain"}"#),
    ("actions", r#"{"actionClass": "nowhere", "package": "p", "parameters": {"a": 1}}"#),
    ("actions", r#"{"actionClass": "open", "parameters": {"a": "b", "c": {"d": [1]}}}"#),
    ("actions", r#"{"actionClass": "tidy", "parameters": {"days": 3}}"#),
    (
        "actions",
        r#"{"actionClass": "backups", "package": "p", "dryRun": false, "parameters": {"target": "a",
            "keep": false, "copies": 2, "ratio": 0.5, "level": "low", "tags": ["a"],
            "options": {"mode": "full"}}}"#,
    ),
    (
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "", "ratio": 2}}"#,
    ),
    (
        "retryactions",
        r#"{"template": {"actionClass": "backup", "package": "p", "parameters": {"target": "a"}}}"#,
    ),
    (
        "actions",
        r#"{"actionClass": "operator-install", "package": "foo-operator", "version": "^1.2.x",
            "installDependencies": true, "ensureConstraintSatisfiability": true, "dryRun": true}"#,
    ),
    ("actions", r#"{"actionClass": "operator-deletion", "package": "foo"}"#),
    ("actions", r#"{"actionClass": "autoremove"}"#),
];

/// Manifests that are refused.
pub(crate) const WRONG: &[Wrong] = &[
    COMPARED,
    CHECKED,
    (
        "no value for a required attribute, by an alias of the class",
        "actions",
        r#"{"actionClass": "backups", "parameters": {"target": "a"}}"#,
        "class backup needs spec.package",
    ),
    (
        "an empty value for a required attribute",
        "actions",
        r#"{"actionClass": "backup", "package": "", "parameters": {"target": "a"}}"#,
        "class backup needs spec.package",
    ),
    (
        "an attribute that the class does not have",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "channel": "c", "parameters": {"target": "a"}}"#,
        "spec.channel: class backup has no attribute channel: it has package, dryRun",
    ),
    (
        "a version for a class without",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "version": "1", "parameters": {"target": "a"}}"#,
        "spec.version: class backup has no attribute version",
    ),
    (
        "a repository for a class without",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "repository": "r", "parameters": {"target": "a"}}"#,
        "spec.repository: class backup has no attribute repository",
    ),
    (
        "a flag that is false for a class without",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "installDependencies": false, "parameters": {"target": "a"}}"#,
        "spec.installDependencies: class backup has no attribute installDependencies",
    ),
    (
        "an attribute for a class without any",
        "actions",
        r#"{"actionClass": "plain", "package": "p"}"#,
        "spec.package: class plain has no attribute package: it has none",
    ),
    (
        "an attribute that is a parameter",
        "actions",
        r#"{"actionClass": "tidy", "version": "1", "parameters": {"days": 3}}"#,
        "spec.version: it is a parameter: write spec.parameters.version",
    ),
    (
        "a parameter that is an attribute",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "package": "p"}}"#,
        "spec.parameters.package: it is no parameter: write spec.package",
    ),
    (
        "a parameter for a class without any",
        "actions",
        r#"{"actionClass": "plain", "parameters": {"a": 1}}"#,
        "spec.parameters.a: class plain has no parameters, but a is given",
    ),
    (
        "a parameter that the class does not have",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "colour": "red"}}"#,
        "spec.parameters.colour: class backup has no parameter colour: it has ",
    ),
    (
        "no value for a parameter that the schema requires",
        "actions",
        r#"{"actionClass": "backup", "package": "p"}"#,
        "class backup needs spec.parameters.target",
    ),
    (
        "no value for a parameter that the class requires",
        "actions",
        r#"{"actionClass": "tidy"}"#,
        "class tidy needs spec.parameters.days",
    ),
    (
        "two things at once",
        "actions",
        r#"{"actionClass": "backup", "channel": "c", "parameters": {"target": "a"}}"#,
        "it has package, dryRun; class backup needs spec.package",
    ),
    (
        "a number for a text",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": 5}}"#,
        "spec.parameters.target is 5: write a text",
    ),
    (
        "a text for true or false",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "keep": "yes"}}"#,
        r#"spec.parameters.keep is \"yes\": write true or false"#,
    ),
    (
        "a text for a whole number",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "copies": "2"}}"#,
        r#"spec.parameters.copies is \"2\": write a whole number"#,
    ),
    (
        "a fraction for a whole number",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "copies": 1.5}}"#,
        "spec.parameters.copies is 1.5: write a whole number",
    ),
    (
        "true for a number",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "ratio": true}}"#,
        "spec.parameters.ratio is true: write a number",
    ),
    (
        "a text for a list",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "tags": "a"}}"#,
        r#"spec.parameters.tags is \"a\": write a list, such as [foo]"#,
    ),
    (
        "fields for a list",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "tags": {"a": "b"}}}"#,
        "spec.parameters.tags: write a list, such as [foo]",
    ),
    (
        "a list for fields",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "options": ["full"]}}"#,
        "spec.parameters.options: write fields, each as NAME: VALUE",
    ),
    (
        "a known parameter of another type for a class with others",
        "actions",
        r#"{"actionClass": "open", "parameters": {"a": 1, "b": 2}}"#,
        "spec.parameters.a is 1: write a text",
    ),
    (
        "a value that is not listed",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "level": "mid"}}"#,
        r#"spec.parameters.level is \"mid\": write low or high"#,
    ),
    (
        "too large a number",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "copies": 9}}"#,
        "spec.parameters.copies",
    ),
    (
        "too many items",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "tags": ["a", "b", "c"]}}"#,
        "spec.parameters.tags",
    ),
    (
        "a field of a parameter that is not listed",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "options": {"mode": "x"}}}"#,
        "spec.parameters.options.mode",
    ),
    (
        "an unknown field of a parameter",
        "actions",
        r#"{"actionClass": "backup", "package": "p", "parameters": {"target": "a", "options": {"size": 1}}}"#,
        "spec.parameters.options.size: unknown field",
    ),
    (
        "a template of a RetryAction without a required attribute",
        "retryactions",
        r#"{"template": {"actionClass": "backup", "parameters": {"target": "a"}}}"#,
        "class backup needs spec.template.package",
    ),
    (
        "a template of a CronAction with an unknown attribute",
        "cronactions",
        r#"{"schedule": "0 3 * * *", "template": {"actionClass": "backup", "package": "p", "channel": "c", "parameters": {"target": "a"}}}"#,
        "spec.template.channel: class backup has no attribute channel",
    ),
    (
        "a template of an EventAction with a parameter of another type",
        "eventactions",
        r#"{"trigger": {"kind": "Catalog"}, "template": {"actionClass": "backup", "package": "p", "parameters": {"target": "a", "keep": 1}}}"#,
        "spec.template.parameters.keep is 1: write true or false",
    ),
    (
        "an installation without a package",
        "actions",
        r#"{"actionClass": "operator-install"}"#,
        "class operator-install needs spec.package",
    ),
    (
        "an installation without a package, as the design spells it",
        "retryactions",
        r#"{"backoffLimit": 5, "template": {"actionClass": "operator-installation", "version": "^1.2.x"}}"#,
        "class operator-install needs spec.template.package",
    ),
    (
        "an installation of a range that is none",
        "actions",
        r#"{"actionClass": "operator-install", "package": "foo", "version": "latest and greatest"}"#,
        "spec.version",
    ),
    (
        "a version to delete",
        "actions",
        r#"{"actionClass": "operator-delete", "package": "foo", "version": "1.0.0"}"#,
        "spec.version: class operator-delete has no attribute version",
    ),
    (
        "a channel to update from",
        "actions",
        r#"{"actionClass": "operator-update", "package": "foo", "channel": "stable"}"#,
        "spec.channel: class operator-update has no attribute channel",
    ),
    (
        "an update of what is latest, as a text",
        "actions",
        r#"{"actionClass": "operator-update", "parameters": {"latest": "yes"}}"#,
        r#"spec.parameters.latest is \"yes\": write true or false"#,
    ),
    (
        "a package to remove automatically",
        "actions",
        r#"{"actionClass": "autoremove", "package": "foo"}"#,
        "spec.package: class autoremove has no attribute package: it has dryRun",
    ),
    (
        "an answer that would change nothing",
        "actions",
        r#"{"actionClass": "resolution", "package": "foo", "dryRun": true}"#,
        "spec.dryRun: class resolution has no attribute dryRun",
    ),
    (
        "a package of a release",
        "actions",
        r#"{"actionClass": "release-update", "package": "foo"}"#,
        "spec.package: class release-update has no attribute package: it has version, dryRun",
    ),
    (
        "no capabilities",
        "actions",
        r#"{"actionClass": "capability-enable"}"#,
        "class capability-enable needs spec.parameters.capabilities",
    ),
    (
        "a single capability",
        "actions",
        r#"{"actionClass": "capability-enable", "parameters": {"capabilities": "Console"}}"#,
        r#"spec.parameters.capabilities is \"Console\": write a list, such as [foo]"#,
    ),
    (
        "a window with a schedule that is none",
        "actions",
        r#"{"actionClass": "plain", "preconditions": {"withinMaintenanceWindow": {"schedule": "often", "duration": "1h"}}}"#,
        "spec.preconditions.withinMaintenanceWindow.schedule",
    ),
    (
        "a window with a name and times of its own",
        "actions",
        r#"{"actionClass": "plain", "preconditions": {"withinMaintenanceWindow": {"name": "nights", "duration": "1h"}}}"#,
        "give either name, or schedule and duration",
    ),
    (
        "an expression that is none",
        "actions",
        r#"{"actionClass": "plain", "preconditions": {"expressions": [{"expression": "plan.changes.size("}]}}"#,
        "spec.preconditions.expressions[0].expression",
    ),
    (
        "an expression that is a number",
        "actions",
        r#"{"actionClass": "plain", "preconditions": {"expressions": [{"expression": "plan.changes.size()"}]}}"#,
        "spec.preconditions.expressions[0].expression: its value is int",
    ),
    ("no class", "actions", r#"{"package": "foo"}"#, "spec.actionClass: Required value"),
    (
        "an empty class",
        "actions",
        r#"{"actionClass": ""}"#,
        "spec.actionClass in body should be at least 1 chars long",
    ),
    (
        "a misspelled field",
        "actions",
        r#"{"actionClass": "plain", "dryrun": true}"#,
        r#"unknown field \"spec.dryrun\""#,
    ),
    (
        "a text for a flag",
        "actions",
        r#"{"actionClass": "operator-install", "package": "foo", "dryRun": "yes"}"#,
        "spec.dryRun in body must be of type boolean",
    ),
    (
        "a deadline in words",
        "actions",
        r#"{"actionClass": "plain", "deadline": "5 minutes"}"#,
        "spec.deadline in body should match",
    ),
    (
        "a text for parameters",
        "actions",
        r#"{"actionClass": "plain", "parameters": "fast"}"#,
        "spec.parameters in body must be of type object",
    ),
    (
        "a limit below zero",
        "retryactions",
        r#"{"backoffLimit": -1, "template": {"actionClass": "plain"}}"#,
        "spec.backoffLimit in body should be greater than or equal to 0",
    ),
    ("no template", "retryactions", r#"{"backoffLimit": 1}"#, "spec.template: Required value"),
    (
        "a template with a requester",
        "retryactions",
        r#"{"template": {"actionClass": "plain", "requester": {"username": "alice"}}}"#,
        "spec.template can have neither requester nor approvals",
    ),
    (
        "no schedule",
        "cronactions",
        r#"{"template": {"actionClass": "plain"}}"#,
        "spec.schedule: Required value",
    ),
    (
        "a policy that is none",
        "cronactions",
        r#"{"schedule": "0 3 * * *", "concurrencyPolicy": "Never", "template": {"actionClass": "plain"}}"#,
        r#"spec.concurrencyPolicy: Unsupported value: \"Never\""#,
    ),
    (
        "an object that is not looked at",
        "eventactions",
        r#"{"trigger": {"kind": "Object"}, "template": {"actionClass": "plain"}}"#,
        "kind Object and object need each other",
    ),
    (
        "an event that the kind does not have",
        "eventactions",
        r#"{"trigger": {"kind": "Catalog", "events": ["Installed"]}, "template": {"actionClass": "plain"}}"#,
        "a Catalog has the event ContentChanged, an Operator Installed, Unsatisfied and UpdateAvailable",
    ),
];
