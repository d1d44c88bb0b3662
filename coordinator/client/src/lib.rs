//! A client of a service: [`connection`], [`submit`], [`logs`] and [`fetch`], for commands and for Python.

pub mod connection;
pub mod fetch;
pub mod logs;
pub mod submit;
