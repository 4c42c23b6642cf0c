//! Numbers, transforms, sizes and versions as Python has them.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tyr::{Error, Number, NumberType, Relation, Timestamp, TransformKind};

use crate::error::{Result, exception};

/// The type of numbers of this name.
pub fn number_type(name: &str) -> Result<NumberType> {
    let found = NumberType::ALL.into_iter().find(|it| it.name() == name);
    let names = NumberType::ALL.map(NumberType::name).join(", ");
    Ok(found.ok_or_else(|| {
        Error::invalid(format!("a number's type is one of {names}, not \"{name}\""))
    })?)
}

/// A number of Python as one of this type.
pub fn number(number_type: NumberType, value: &Bound<'_, PyAny>) -> PyResult<Number> {
    let number = match number_type {
        NumberType::I8 => value.extract().map(Number::I8),
        NumberType::I16 => value.extract().map(Number::I16),
        NumberType::I32 => value.extract().map(Number::I32),
        NumberType::I64 => value.extract().map(Number::I64),
        NumberType::U8 => value.extract().map(Number::U8),
        NumberType::U16 => value.extract().map(Number::U16),
        NumberType::U32 => value.extract().map(Number::U32),
        NumberType::U64 => value.extract().map(Number::U64),
        NumberType::F32 => value.extract().map(Number::F32),
        NumberType::F64 => value.extract().map(Number::F64),
    };
    let py = value.py();
    number.map_err(|error| match error.is_instance_of::<PyTypeError>(py) {
        true => error,
        false => {
            let text = format!("{value} does not fit into {}", number_type.name());
            exception(py, Error::invalid(text))
        }
    })
}

/// A number as Python has it.
pub fn to_python(py: Python<'_>, number: Number) -> PyResult<Py<PyAny>> {
    match number {
        Number::I8(it) => it.into_py_any(py),
        Number::I16(it) => it.into_py_any(py),
        Number::I32(it) => it.into_py_any(py),
        Number::I64(it) => it.into_py_any(py),
        Number::U8(it) => it.into_py_any(py),
        Number::U16(it) => it.into_py_any(py),
        Number::U32(it) => it.into_py_any(py),
        Number::U64(it) => it.into_py_any(py),
        Number::F32(it) => it.into_py_any(py),
        Number::F64(it) => it.into_py_any(py),
    }
}

/// How two numbers are compared, by its sign in Python.
pub fn relation(sign: &str) -> Result<Relation> {
    Ok(match sign {
        "==" => Relation::Equal,
        "!=" => Relation::NotEqual,
        "<" => Relation::Less,
        "<=" => Relation::LessOrEqual,
        ">" => Relation::Greater,
        ">=" => Relation::GreaterOrEqual,
        _ => {
            let text = format!("a relation is one of == != < <= > >=, not \"{sign}\"");
            return Err(Error::invalid(text).into());
        }
    })
}

/// Arithmetic in place: what is done, with which number.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Transform(pub tyr::Transform);

fn transform(kind: TransformKind, of: &str, value: &Bound<'_, PyAny>) -> Result<Transform> {
    Ok(Transform(tyr::Transform::new(kind, number(number_type(of)?, value)?)?))
}

#[pymethods]
impl Transform {
    #[new]
    fn new(kind: &str, r#type: &str, value: &Bound<'_, PyAny>) -> Result<Self> {
        let found = TransformKind::ALL.into_iter().find(|it| it.name() == kind);
        let names = TransformKind::ALL.map(TransformKind::name).join(", ");
        let found = found.ok_or_else(|| {
            Error::invalid(format!("a transform is one of {names}, not \"{kind}\""))
        })?;
        transform(found, r#type, value)
    }

    #[staticmethod]
    fn add(r#type: &str, value: &Bound<'_, PyAny>) -> Result<Self> {
        transform(TransformKind::Add, r#type, value)
    }

    #[staticmethod]
    fn sub(r#type: &str, value: &Bound<'_, PyAny>) -> Result<Self> {
        transform(TransformKind::Sub, r#type, value)
    }

    #[staticmethod]
    fn min(r#type: &str, value: &Bound<'_, PyAny>) -> Result<Self> {
        transform(TransformKind::Min, r#type, value)
    }

    #[staticmethod]
    fn max(r#type: &str, value: &Bound<'_, PyAny>) -> Result<Self> {
        transform(TransformKind::Max, r#type, value)
    }

    #[staticmethod]
    fn swap(r#type: &str, value: &Bound<'_, PyAny>) -> Result<Self> {
        transform(TransformKind::Swap, r#type, value)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (kind, operand) = (self.0.kind().name(), self.0.operand());
        let value = to_python(py, operand)?;
        Ok(format!("Transform('{kind}', '{}', {value})", operand.number_type().name()))
    }
}

/// The version of a blob, of a transaction, of a snapshot: later ones are greater.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Version(pub Timestamp);

#[pymethods]
impl Version {
    fn __richcmp__(&self, other: &Bound<'_, Self>, op: CompareOp) -> bool {
        let order: Ordering = self.0.cmp(&other.get().0);
        op.matches(order)
    }

    /// The clock of the node that gave it, in microseconds since 1970; never before that of what it
    /// comes after, so ahead of the day where clocks differ.
    #[getter]
    fn clock_us(&self) -> u64 {
        self.0.clock
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Version {}>", self.0)
    }
}

/// Size and version of a blob.
#[pyclass(frozen, module = "tyr._tyr")]
#[derive(Debug)]
pub struct Stat(pub tyr::Stat);

#[pymethods]
impl Stat {
    #[getter]
    fn size(&self) -> u64 {
        self.0.size
    }

    #[getter]
    fn version(&self) -> Version {
        Version(self.0.version)
    }

    fn __repr__(&self) -> String {
        format!("<Stat: {} bytes, version {}>", self.0.size, self.0.version)
    }
}
