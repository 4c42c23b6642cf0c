//! Java's objects: what it gives as ours, answers and failures as its.

use std::any::Any;

use jni::errors::{Error, ErrorPolicy};
use jni::objects::{JObject, JThrowable, JValue};
use jni::strings::JNIStr;
use jni::{Env, jni_sig, jni_str};

use super::array;
use crate::answer::Answer;
use crate::failure::Failure;
use crate::front::bug;
use crate::handle::HANDLES;

/// The class that declares our functions, and has what we call.
pub const NATIVE: &JNIStr = jni_str!("io/github/tyrstore/Native");

/// What a function of the border answers.
pub type Result<T, E = Stop> = std::result::Result<T, E>;

/// Why a function has nothing to answer.
#[derive(Debug)]
pub enum Stop {
    Failure(Failure),
    /// Something of Java's, which has an exception for it, or a bug.
    Java(Error),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Java(error)
    }
}

/// An answer: a `long[]`, which is empty where there is nothing to say, or a `byte[]`.
pub fn of<'local>(env: &Env<'local>, answer: Answer) -> jni::errors::Result<JObject<'local>> {
    Ok(match answer {
        Answer::Nothing => array::of_numbers(env, &[])?.into(),
        Answer::Numbers(numbers) => array::of_numbers(env, numbers.as_slice())?.into(),
        Answer::Bytes(bytes) => array::of_bytes(env, &bytes)?.into(),
        Answer::Packed(bytes) => array::of_bytes(env, &bytes)?.into(),
    })
}

/// The exception for a failure; `Failures.java` makes it.
pub fn exception<'local>(
    env: &mut Env<'local>,
    failure: Failure,
) -> jni::errors::Result<JThrowable<'local>> {
    let text = array::of_bytes(env, failure.text().as_bytes())?;
    let key = match failure.key() {
        Some(key) => array::of_bytes(env, key)?.into(),
        None => JObject::null(),
    };
    let operation = failure.operation().map_or(-1, |place| place as i32);
    let number = failure.number();
    let cause = failure.into_cause().map_or(0, |cause| HANDLES.add(cause));
    let arguments = [
        JValue::Int(number),
        JValue::Object(&text),
        JValue::Object(&key),
        JValue::Int(operation),
        JValue::Long(cause),
    ];
    let (name, signature) = (jni_str!("exception"), jni_sig!("(I[B[BIJ)Ljava/lang/Throwable;"));
    let made = env.call_static_method(NATIVE, name, signature, &arguments)?.l()?;
    env.cast_local::<JThrowable>(made)
}

/// What a call that was started has answered, or its exception. Where there is no memory for one
/// that is an exception, too: whoever waits for the call is told.
pub fn of_call<'local>(
    env: &mut Env<'local>,
    answer: Result<Answer, Failure>,
) -> jni::errors::Result<JObject<'local>> {
    let made = match answer {
        Ok(answer) => of(env, answer),
        Err(failure) => exception(env, failure).map(JObject::from),
    };
    made.or_else(|error| {
        let thrown = env.exception_occurred();
        env.exception_clear();
        thrown.map(JObject::from).ok_or(error)
    })
}

/// Throws what a function ended with, and has it answer null, or zero.
pub struct Throw;

impl<T: Default> ErrorPolicy<T, Stop> for Throw {
    type Captures<'outer: 'inner, 'inner> = ();

    fn on_error<'outer: 'inner, 'inner>(
        env: &mut Env<'outer>,
        (): &mut (),
        stop: Stop,
    ) -> jni::errors::Result<T> {
        throw(env, stop)?;
        Ok(T::default())
    }

    fn on_panic<'outer: 'inner, 'inner>(
        env: &mut Env<'outer>,
        (): &mut (),
        panic: Box<dyn Any + Send + 'static>,
    ) -> jni::errors::Result<T> {
        throw(env, Stop::Failure(bug(&*panic)))?;
        Ok(T::default())
    }
}

fn throw(env: &mut Env<'_>, stop: Stop) -> jni::errors::Result<()> {
    // One that is there already stays: nothing else may be asked of Java then.
    if env.exception_check() {
        return Ok(());
    }
    let failure = match stop {
        Stop::Failure(failure) => failure,
        Stop::Java(error) => Failure::Bug(format!("the border to Java: {error}")),
    };
    let exception = exception(env, failure)?;
    env.throw(exception)
}
