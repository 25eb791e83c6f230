//! Small graphs as pictures.
