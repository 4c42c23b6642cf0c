//! What a script says it is, checked: its name, its methods, its tests.

use mlua::Value;
use tyr_types::{Error, Result};

use super::value;
use crate::class::{ClassInfo, MethodKind};
use crate::limits::Limits;

/// The only scope that a method can name: the chunk that begins the blob, its attributes, its map.
const SCOPE: &str = "head";

/// What a script says it is.
pub struct Described {
    pub info: ClassInfo,
    /// The names of its tests, sorted.
    pub tests: Vec<String>,
    /// Keys of its table that mean nothing.
    pub others: Vec<String>,
}

/// Reads what the prelude made of the class; `name` is for a script that does not say it.
///
/// # Errors
/// `InvalidArgument`, naming what is wrong.
pub fn read(words: &[Vec<Value>], name: Option<&str>, limits: Limits) -> Result<Described> {
    let (mut own_name, mut methods, mut tests, mut others) =
        (None, Vec::new(), Vec::new(), Vec::new());
    for line in words {
        let [what, called, kind, scope] = line.as_slice() else { continue };
        match plain(what).unwrap_or_default().as_str() {
            "class" => own_name = Some(plain(called).map_err(|_| unnamed("name"))?),
            "method" => methods.push(method(called, kind, scope)?),
            "other" => others.push(plain(called).unwrap_or_default()),
            _ => tests.push(plain(called).map_err(|_| unnamed("name of a test"))?),
        }
    }
    let name = own_name.or_else(|| name.map(str::to_owned)).ok_or_else(|| {
        Error::invalid("the script registers handlers, and has no name: give the class one")
    })?;
    tests.sort();
    others.sort();
    Ok(Described { info: ClassInfo::new(name, methods, limits)?, tests, others })
}

fn method(called: &Value, kind: &Value, scope: &Value) -> Result<(String, MethodKind)> {
    let name = plain(called).map_err(|_| unnamed("name of a method"))?;
    let of = |text: String| Error::invalid(format!("method \"{}\": {text}", name.escape_debug()));
    let kind =
        value::named(kind, "its \"kind\"", &MethodKind::ALL, MethodKind::name).map_err(of)?;
    if !scope.is_nil() {
        value::named(scope, "its \"scope\"", &[SCOPE], |it| it).map_err(of)?;
    }
    Ok((name, kind))
}

fn unnamed(what: &str) -> Error {
    Error::invalid(format!("the {what} is not there, or no string: give the class one"))
}

fn plain(value: &Value) -> Result<String, ()> {
    match value {
        Value::String(text) => text.to_str().map(|text| text.to_owned()).map_err(drop),
        _ => Err(()),
    }
}
