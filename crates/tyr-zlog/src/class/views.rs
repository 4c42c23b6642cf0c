//! The class `zlog_view` in Rust: the head of a log, with its views.
//!
//! What is where in the map says `zlog_view.lua`, which does the same.

use tyr::Bytes;
use tyr_class::{Companion, Context, Failure, Map, MethodKind};

use super::input::{Fields, numbers};
use super::native::{Method, NativeClass};
use super::refusal::Refusal;
use super::{VIEW_CLASS, VIEW_LEN_MAX};

const ANSWER_LEN_MAX: usize = 64 << 10;

fn key(epoch: u64) -> Vec<u8> {
    format!("{epoch:020}").into_bytes()
}

/// How many views there are: the newest epoch and one.
fn count(context: &mut dyn Context) -> Result<u64, Failure> {
    let header = Map::new(&mut Companion(context)).header()?;
    Ok(header.as_ref().try_into().map_or(0, |bytes| u64::from_le_bytes(bytes) + 1))
}

fn create_view(context: &mut dyn Context, input: &[u8]) -> Result<Bytes, Failure> {
    let ([epoch], view) = numbers(input)?;
    if view.len() > VIEW_LEN_MAX {
        return Err(Refusal::Wrong.failure("a view has at most 32768 bytes"));
    }
    let next = count(context)?;
    if epoch < next {
        return Err(Refusal::Exists.failure(format!("there is a view of epoch {epoch}")));
    }
    if epoch > next {
        let text = format!("the next view is of epoch {next}, not {epoch}");
        return Err(Refusal::Wrong.failure(text));
    }
    let mut companion = Companion(context);
    let mut map = Map::new(&mut companion);
    map.set(&key(epoch), view)?;
    map.set_header(&epoch.to_le_bytes())?;
    Ok(Bytes::new())
}

fn read_views(context: &mut dyn Context, input: &[u8]) -> Result<Bytes, Failure> {
    let ([from, wanted], _) = numbers(input)?;
    let total = count(context)?;
    let mut answer = total.to_le_bytes().to_vec();
    for epoch in from..total.min(from + wanted) {
        let view = Map::new(&mut Companion(context)).get(&key(epoch))?.unwrap_or_default();
        if answer.len() + 16 + view.len() > ANSWER_LEN_MAX {
            break;
        }
        let head = Fields::of([epoch, view.len() as u64]);
        answer.extend_from_slice(&Bytes::from(head.and(&view)));
    }
    Ok(answer.into())
}

const METHODS: &[Method] = &[
    ("create_view", MethodKind::Call, create_view),
    ("read_views", MethodKind::Query, read_views),
];

/// The class of heads.
pub fn view_class() -> NativeClass {
    NativeClass::new(VIEW_CLASS, METHODS)
}
