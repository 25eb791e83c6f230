//! The options of `oc adm upgrade`, for which there are subcommands here.

use clap::Args;

use super::{UpdateCommand, UpdateToArguments};

/// An update, or its cancellation, as `oc adm upgrade` requests it (CV-31.2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct UpgradeOptions {
    /// For `to VERSION`
    #[arg(long, value_name = "VERSION", hide = true, group = "requested")]
    pub to: Option<String>,
    /// For `to --to-image IMAGE`
    #[arg(long, value_name = "IMAGE", hide = true, group = "requested")]
    pub to_image: Option<String>,
    /// For `to --latest`
    #[arg(long, hide = true, group = "requested")]
    pub to_latest: bool,
    /// For `clear`
    #[arg(long, hide = true, conflicts_with = "requested")]
    pub clear: bool,
    /// For `to VERSION --force`
    #[arg(long, hide = true, requires = "requested")]
    pub force: bool,
    /// For `to --to-image IMAGE --allow-explicit-update`
    #[arg(long, hide = true, requires = "requested")]
    pub allow_explicit_upgrade: bool,
    /// For `to VERSION --allow-update-with-warnings`
    #[arg(long, hide = true, requires = "requested")]
    pub allow_upgrade_with_warnings: bool,
    /// Without effect: no update has a risk that would leave it out of the overview
    #[arg(long, hide = true)]
    pub include_not_recommended: bool,
}

impl UpgradeOptions {
    /// The subcommand that these options stand for, or else the one on the command line.
    ///
    /// # Errors
    ///
    /// When there are both.
    pub fn or(
        self,
        command: Option<UpdateCommand>,
    ) -> Result<Option<UpdateCommand>, anyhow::Error> {
        if command.is_none() {
            return Ok(self.command());
        }
        anyhow::ensure!(
            self == Self::default(),
            "the options of `oc adm upgrade` cannot be used with a subcommand: leave one of them out; \
             see `plimsoll update --help`"
        );
        Ok(command)
    }

    fn command(self) -> Option<UpdateCommand> {
        if self.clear {
            return Some(UpdateCommand::Clear);
        }
        let is_requested = self.to.is_some() || self.to_image.is_some() || self.to_latest;
        is_requested.then_some(UpdateCommand::To(UpdateToArguments {
            version: self.to,
            to_image: self.to_image,
            latest: self.to_latest,
            force: self.force,
            allow_explicit_update: self.allow_explicit_upgrade,
            wait: false,
            allow_update_with_warnings: self.allow_upgrade_with_warnings,
        }))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{UpdateArguments, UpdateCommand};

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        arguments: UpdateArguments,
    }

    /// The subcommand that a command line comes down to.
    fn parse(line: &str) -> Option<UpdateCommand> {
        let words = ["update"].into_iter().chain(line.split_whitespace());
        let UpdateArguments { command, options, .. } =
            Program::try_parse_from(words).expect(line).arguments;
        options.or(command).expect(line)
    }

    #[test]
    fn options_of_oc_mean_the_same_as_the_subcommands() {
        let check = |options: &str, expected: &str| {
            assert_eq!(
                format!("{:?}", parse(options)),
                format!("{:?}", parse(expected)),
                "{options}"
            );
        };
        check("--to 1.1.0", "to 1.1.0");
        check("--to=1.1.0 --force", "to 1.1.0 --force");
        check("--to 1.1.0 --allow-upgrade-with-warnings", "to 1.1.0 --allow-update-with-warnings");
        check("--to-latest", "to --latest");
        check(
            "--to-image a@sha256:b --allow-explicit-upgrade",
            "to --to-image a@sha256:b --allow-explicit-update",
        );
        check("--clear", "clear");
        check("--include-not-recommended", "");
        check("status", "status");
    }
}
