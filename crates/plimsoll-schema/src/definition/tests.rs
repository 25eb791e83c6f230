//! Every keyword of a schema that a definition may not have, with the words of apiextensions.
