//! Keyword arguments as a job.
//!
//! Arguments have the names of the keys of a job file, which are unique over its tables; so the table need not be named. Values are checked as those
//! of a job file are, with the same errors.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use basics::nearest::nearest;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use training::job::Job;

/// Tables `[[sweep]]` of a job file.
const SWEEP: &str = "sweep";

/// Names of the keys of a job file, with their tables.
#[pyfunction]
pub fn keys() -> Vec<(&'static str, &'static str)> {
    Job::keys().iter().map(|key| (key.table, key.name)).collect()
}

/// The job with these values of its keys, as the text of a job file with absolute paths.
#[pyfunction]
pub fn job_file(keys: &Bound<'_, PyDict>) -> PyResult<String> {
    Ok(job(keys)?.to_toml())
}

/// Reads the job with these values of its keys. Relative paths are relative to the current folder.
pub fn job(arguments: &Bound<'_, PyDict>) -> PyResult<Job> {
    // An error is about a key that is missing, not about its table.
    let required =
        ["model", "corpus"].map(|table| (table.to_owned(), toml::Value::Table(toml::Table::new())));
    let mut root = toml::Table::from_iter(required);
    for (name, value) in arguments.iter() {
        let name: String = name.extract()?;
        if value.is_none() {
            continue; // the default
        }
        if name == SWEEP {
            let grids = match self::value(&name, &value)? {
                grid @ toml::Value::Table(_) => toml::Value::Array(vec![grid]),
                grids => grids,
            };
            root.insert(name, grids);
            continue;
        }
        let keys = keys();
        let Some((table, _)) = keys.iter().find(|(_, known)| *known == name) else {
            let names: Vec<&str> = keys.iter().map(|(_, known)| *known).collect();
            let way_out = match nearest(&name, names) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "`grammaton keys` lists them".to_owned(),
            };
            return Err(PyTypeError::new_err(format!("no key of a job is called \"{name}\"; {way_out}")));
        };
        let entry = root.entry(*table).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        if let toml::Value::Table(table) = entry {
            table.insert(name.clone(), self::value(&name, &value)?);
        }
    }
    let job = Job::parse(&root.to_string(), "arguments", Path::new(""), &[]);
    job.map_err(|fault| PyValueError::new_err(fault.without_place().to_string()))
}

/// An argument that is a number in `range`.
pub fn count<T: TryFrom<i64> + Into<i64> + Copy>(
    name: &str,
    number: Option<i64>,
    range: RangeInclusive<T>,
) -> PyResult<Option<T>> {
    let Some(number) = number else { return Ok(None) };
    let (least, most): (i64, i64) = ((*range.start()).into(), (*range.end()).into());
    match T::try_from(number) {
        Ok(count) if (least..=most).contains(&number) => Ok(Some(count)),
        _ => Err(PyValueError::new_err(format!("{name} must be from {least} to {most}, found {number}"))),
    }
}

/// A Python value as one of TOML. Errors name `key`.
fn value(key: &str, value: &Bound<'_, PyAny>) -> PyResult<toml::Value> {
    // NumPy's too, which are no instances of `bool`.
    if let Ok(flag) = value.extract::<bool>() {
        return Ok(toml::Value::Boolean(flag));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(toml::Value::String(value.extract()?));
    }
    if let Ok(table) = value.cast::<PyDict>() {
        let entry = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((name.extract()?, self::value(key, &value)?))
        };
        return Ok(toml::Value::Table(table.iter().map(entry).collect::<PyResult<_>>()?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| self::value(key, &item?));
        return Ok(toml::Value::Array(items.collect::<PyResult<_>>()?));
    }
    // Before numbers of other libraries, which convert themselves.
    if let Ok(path) = value.extract::<PathBuf>() {
        let text = path.into_os_string().into_string();
        let not_text = |path| PyValueError::new_err(format!("{key}: the path {path:?} is not UTF-8"));
        return Ok(toml::Value::String(text.map_err(not_text)?));
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(toml::Value::Integer(number));
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(toml::Value::Float(number));
    }
    let found = value.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "{key} must be text, a number, True or False, a path, a list or a dictionary, found {found}"
    )))
}
