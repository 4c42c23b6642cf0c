//! The border to Java: the functions that `Native.java` declares.
//!
//! Names and signatures are those that Java looks up, which no compiler checks, so `unsafe` is
//! allowed here and nowhere else; memory of Java's is touched in two places, [`mod@array`] and
//! [`buffer`]. No panic crosses the border: it is an exception, [`object`] says which. What Java
//! gives is copied, but for a buffer that is read into.

#![allow(unsafe_code, reason = "Java looks functions up by name, and lends its buffers")]
#![allow(clippy::too_many_arguments, reason = "Java has no structs: a call is what it takes")]

mod array;
mod buffer;
mod object;

use jni::objects::{JByteArray, JByteBuffer, JClass, JLongArray, JObject, JObjectArray, JValue};
use jni::sys::{jint, jlong};
use jni::{Env, EnvUnowned, jni_sig, jni_str};

use crate::answer::Answer;
use crate::call::Call;
use crate::failure::Failure;
use crate::front::{self, Front};
use crate::handle::HANDLES;
use crate::op;
use crate::store::Store;
use object::{Result, Throw};

/// A call, see [`Call`]. With a tag it is started, and null when its answer is to be taken later;
/// without, the thread waits.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_github_tyrstore_Native_call<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    tag: jlong,
    op: jint,
    handle: jlong,
    keyspace: jlong,
    key: JByteArray<'local>,
    a: jlong,
    b: jlong,
    data: JByteArray<'local>,
    more: JByteArray<'local>,
) -> JObject<'local> {
    let called = env.with_env(|env| -> Result<JObject<'local>> {
        let key = array::bytes(env, &key);
        let (data, more) = (array::bytes(env, &data), array::bytes(env, &more));
        let mut is_interrupted = || is_interrupted(env);
        let front = match tag {
            0 => Front::Waits(&mut is_interrupted),
            tag => Front::Started(tag),
        };
        let call = Call { op, handle, keyspace, key, a, b, data, more, front };
        match call.run()? {
            None => Ok(JObject::null()),
            Some(answer) => Ok(object::of(env, answer)?),
        }
    });
    called.resolve::<Throw>()
}

/// Runs an `Attempt` in transactions until one commits; what its operations answered.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_github_tyrstore_Native_transact<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    store: jlong,
    attempt: JObject<'local>,
) -> JObject<'local> {
    let called = env.with_env(|env| -> Result<JObject<'local>> {
        let store = HANDLES.get::<Store>(store)?;
        let mut thrown = None;
        let answer = {
            // Both are called by this thread, one after the other.
            let env = std::cell::RefCell::new(&mut *env);
            let run = |transaction: i64| -> i32 {
                if thrown.is_some() {
                    return NO_KIND;
                }
                let arguments = [JValue::Long(transaction)];
                let (name, signature) = (jni_str!("run"), jni_sig!("(J)I"));
                let ran = env.borrow_mut().call_method(&attempt, name, signature, &arguments);
                ran.and_then(|it| it.i()).unwrap_or_else(|error| {
                    thrown = Some(error);
                    NO_KIND
                })
            };
            let mut is_interrupted = || is_interrupted(&mut env.borrow_mut());
            store.transact(run, &mut is_interrupted)
        };
        match thrown {
            Some(error) => Err(error.into()),
            None => Ok(object::of(env, answer?)?),
        }
    });
    called.resolve::<Throw>()
}

/// What an attempt answers that failed with no error of Týr's.
const NO_KIND: i32 = i32::MAX;

/// Reads part of a blob of a keyspace into a direct buffer; how many bytes.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_github_tyrstore_Native_readInto<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    key: JByteArray<'local>,
    offset: jlong,
    buffer: JByteBuffer<'local>,
    position: jint,
    len: jint,
) -> jint {
    let called = env.with_env(|env| -> Result<jint> {
        let key = array::bytes(env, &key);
        let mut is_interrupted = || is_interrupted(env);
        let (front, none) = (Front::Waits(&mut is_interrupted), Vec::new());
        let (a, b, data, more) = (offset, len.into(), Vec::new(), none);
        let call = Call { op: op::READ, handle, keyspace: 0, key, a, b, data, more, front };
        match call.run()? {
            Some(Answer::Bytes(bytes)) => Ok(buffer::fill(env, &buffer, position, &bytes)?),
            other => Err(Failure::Bug(format!("a read has answered {other:?}")).into()),
        }
    });
    called.resolve::<Throw>()
}

/// Takes calls that are over, as many as the arrays have room for: tags into the one, what they
/// answered or threw into the other. Waits for the first; answers how many.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_github_tyrstore_Native_take<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    tags: JLongArray<'local>,
    answers: JObjectArray<'local>,
) -> jint {
    let called = env.with_env(|env| -> Result<jint> {
        let taken = front::take(tags.len(env)?.min(answers.len(env)?));
        let count = taken.len() as jint;
        for (place, done) in taken.into_iter().enumerate() {
            tags.set_region(env, place as jint, &[done.tag as i64])?;
            env.with_local_frame(LOCAL_REFERENCES, |env| {
                let answer = object::of_call(env, done.answer)?;
                answers.set_element(env, place, answer)
            })?;
        }
        Ok(count)
    });
    called.resolve::<Throw>()
}

/// Objects that one answer takes, with room to spare.
const LOCAL_REFERENCES: usize = 16;

/// Cancels a call that was started. Its answer is to be taken all the same.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_github_tyrstore_Native_cancel<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    tag: jlong,
) {
    let called = env.with_env(|_| -> Result<()> {
        front::cancel(tag);
        Ok(())
    });
    called.resolve::<Throw>();
}

/// Takes a handle back; one that is none any more is left alone.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_github_tyrstore_Native_free<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    let called = env.with_env(|_| -> Result<()> {
        HANDLES.free(handle);
        Ok(())
    });
    called.resolve::<Throw>();
}

/// How many handles there are.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_github_tyrstore_Native_handles<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
) -> jlong {
    let called = env.with_env(|_| -> Result<jlong> { Ok(HANDLES.count() as jlong) });
    called.resolve::<Throw>()
}

/// Whether the thread that calls was interrupted. Where Java cannot say, it has an exception, which
/// ends the call.
fn is_interrupted(env: &mut Env<'_>) -> bool {
    let (name, signature) = (jni_str!("isInterrupted"), jni_sig!("()Z"));
    let asked = env.call_static_method(object::NATIVE, name, signature, &[]);
    asked.and_then(|it| it.z()).unwrap_or(true)
}
