//! Generated messages.
