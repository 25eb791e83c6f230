//! The CustomResourceDefinitions that Plimsoll installs.
