//! Extended attributes: read as a whole, and written as a whole on condition that they are what
//! was read.

use rustix::io::Errno;

use super::draft::{Condition, Draft};
use super::known::{Known, named};
use super::node::{Home, Node};
use super::{Basis, Operation, Plan, Stop};
use crate::error::Error;
use crate::layout::key::Blob;
use crate::layout::record::{BODY_AT, Time};
use crate::layout::xattrs::Xattrs;

/// All attributes of a file.
#[derive(Clone, Debug)]
pub struct GetXattrs {
    /// The file.
    pub node: Node,
}

impl Operation for GetXattrs {
    type Answer = Xattrs;
    const BASIS: Basis = Basis::Versions;

    fn plan(&self, known: &Known) -> Plan<Draft<Xattrs>> {
        let home = known.home(&self.node, 0)?;
        Ok(Draft::new().answering(read(known, &home)?))
    }
}

/// What becomes of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XattrChange {
    /// It gets this value, whether it is there or not.
    Set(Vec<u8>),
    /// It gets this value; it must not be there.
    Create(Vec<u8>),
    /// It gets this value; it must be there.
    Replace(Vec<u8>),
    /// It goes; it must be there.
    Remove,
}

/// Sets or removes an attribute.
#[derive(Clone, Debug)]
pub struct SetXattr {
    /// The file.
    pub node: Node,
    /// The attribute's name.
    pub name: Vec<u8>,
    /// What becomes of it.
    pub change: XattrChange,
    /// Now.
    pub now: Time,
}

impl Operation for SetXattr {
    type Answer = ();

    fn plan(&self, known: &Known) -> Plan<Draft<()>> {
        let home = known.home(&self.node, 0)?;
        let mut xattrs = read(known, &home)?;
        self.change(&mut xattrs)?;
        xattrs.check()?;
        let mut draft = Draft::new();
        home.require(&mut draft);
        self.write(known, &mut draft, &home, &xattrs)?;
        draft.touch(&home.blob(), self.now);
        Ok(draft)
    }
}

impl SetXattr {
    fn change(&self, xattrs: &mut Xattrs) -> Result<(), Error> {
        let name = self.name.escape_ascii();
        let is_there = xattrs.0.contains_key(&self.name);
        match &self.change {
            XattrChange::Create(_) if is_there => {
                let text = format!("there is an attribute {name} already");
                Err(Error::new(Errno::EXIST, text))
            }
            XattrChange::Replace(_) | XattrChange::Remove if !is_there => {
                Err(no_attribute(&self.name))
            }
            XattrChange::Set(value) | XattrChange::Create(value) | XattrChange::Replace(value) => {
                xattrs.0.insert(self.name.clone(), value.clone());
                Ok(())
            }
            XattrChange::Remove => {
                xattrs.0.remove(&self.name);
                Ok(())
            }
        }
    }

    fn write(
        &self,
        known: &Known,
        draft: &mut Draft<()>,
        home: &Home<'_>,
        xattrs: &Xattrs,
    ) -> Plan<()> {
        let (record, blob) = (home.record(), home.blob());
        let aside = Blob::xattrs(self.node.number);
        let is_aside = record.identity.flags.has_xattrs;
        let is_inline_possible = !matches!(home, Home::Directory(_));
        if is_aside {
            let Some(found) = known.blob(&aside, u64::MAX)? else { return Err(Stop::Again) };
            draft.require(Condition::Unchanged(aside.clone(), found.version));
        } else if is_inline_possible {
            draft.require_bytes(&blob, BODY_AT as u64, &record.body[..]);
        }
        let inline = xattrs.encode_inline().filter(|_| is_inline_possible);
        let mut identity = record.identity;
        identity.flags.has_xattrs = inline.is_none() && !xattrs.0.is_empty();
        if let Some(body) = inline {
            draft.write(&blob, BODY_AT as u64, &body[..]);
        } else if is_inline_possible && !is_aside {
            draft.write(&blob, BODY_AT as u64, [0; 4]);
        }
        match identity.flags.has_xattrs {
            true => draft.put(&aside, xattrs.encode()),
            false if is_aside => draft.delete(aside),
            false => {}
        }
        if identity != record.identity {
            draft.write(&blob, 0, identity.encode());
        }
        Ok(())
    }
}

/// That there is no such attribute.
pub fn no_attribute(name: &[u8]) -> Error {
    let text = format!("there is no attribute {}", name.escape_ascii());
    Error::new(Errno::NODATA, text)
}

fn read(known: &Known, home: &Home<'_>) -> Plan<Xattrs> {
    let record = home.record();
    let aside = Blob::xattrs(record.identity.number);
    if record.identity.flags.has_xattrs {
        let Some(found) = known.blob(&aside, u64::MAX)? else { return Err(Stop::Again) };
        return Ok(named(&aside, Xattrs::decode(&found.bytes))?);
    }
    match home {
        Home::Directory(_) => Ok(Xattrs::default()),
        Home::Entry(..) | Home::Inode(_) => {
            Ok(named(&home.blob(), Xattrs::decode(&record.body[..]))?)
        }
    }
}
