//! The bytes of SWIM's messages: header, what is said of members, rumours behind.
//!
//! All numbers are little-endian, but for the two counts that `foca` writes itself, which are
//! big-endian. Decoding is total: any bytes give a packet or an error, and a packet takes no more
//! memory than a small multiple of the datagram.
//!
//! ```text
//!   header: sender (14), its refutations (2), receiver (14), kind (1),
//!           of some kinds: another member (14), number of the probe (1)
//!   unless Announce, TurnUndead, Broadcast: count (2), members of 17: identity, refutations, state
//!   unless Announce, TurnUndead: rumours, each with its length (2) before it
//!   identity: node (2), incarnation (8), life (4)
//! ```
//!
//! Must not know: what rumours hold.

use bytes::{Buf, BufMut, TryGetError};
use foca::{Header, Member, Message, State};
use tyr_types::{Error, NodeId, Result};

use super::identity::Identity;

const IDENTITY_LEN: usize = 2 + 8 + 4;
const MEMBER_LEN: usize = IDENTITY_LEN + 2 + 1;

/// The longest header.
const HEADER_LEN_MAX: usize = 2 * IDENTITY_LEN + 2 + 1 + IDENTITY_LEN + 1;

/// How `foca` writes and reads.
pub(super) struct Codec;

impl foca::Codec<Identity> for Codec {
    type Error = Error;

    fn encode_header(&mut self, header: &Header<Identity>, mut buf: impl BufMut) -> Result<()> {
        check_room(&buf, HEADER_LEN_MAX)?;
        let room = buf.remaining_mut();
        put_identity(&header.src, &mut buf);
        buf.put_u16_le(header.src_incarnation);
        put_identity(&header.dst, &mut buf);
        put_message(&header.message, &mut buf);
        debug_assert!(room - buf.remaining_mut() <= HEADER_LEN_MAX, "a header is bounded");
        Ok(())
    }

    fn decode_header(&mut self, buf: impl Buf) -> Result<Header<Identity>> {
        read_header(buf)
    }

    fn encode_member(&mut self, member: &Member<Identity>, mut buf: impl BufMut) -> Result<()> {
        check_room(&buf, MEMBER_LEN)?;
        let room = buf.remaining_mut();
        put_member(member, &mut buf);
        debug_assert_eq!(room - buf.remaining_mut(), MEMBER_LEN, "a member has its length");
        Ok(())
    }

    fn decode_member(&mut self, buf: impl Buf) -> Result<Member<Identity>> {
        read_member(buf)
    }
}

fn check_room(buf: &impl BufMut, len: usize) -> Result<()> {
    if buf.remaining_mut() < len {
        return Err(Error::invalid("the datagram is full"));
    }
    Ok(())
}

fn put_identity(identity: &Identity, buf: &mut impl BufMut) {
    buf.put_u16_le(identity.node.0);
    buf.put_u64_le(identity.incarnation);
    buf.put_u32_le(identity.life);
}

fn put_member(member: &Member<Identity>, buf: &mut impl BufMut) {
    put_identity(member.id(), buf);
    buf.put_u16_le(member.incarnation());
    buf.put_u8(match member.state() {
        State::Alive => 0,
        State::Suspect => 1,
        State::Down => 2,
    });
}

fn put_message(message: &Message<Identity>, buf: &mut impl BufMut) {
    let (kind, number, member) = match message {
        Message::Ping(number) => (0, Some(number), None),
        Message::Ack(number) => (1, Some(number), None),
        Message::PingReq { target, probe_number } => (2, Some(probe_number), Some(target)),
        Message::IndirectPing { origin, probe_number } => (3, Some(probe_number), Some(origin)),
        Message::IndirectAck { target, probe_number } => (4, Some(probe_number), Some(target)),
        Message::ForwardedAck { origin, probe_number } => (5, Some(probe_number), Some(origin)),
        Message::Announce => (6, None, None),
        Message::Feed => (7, None, None),
        Message::Gossip => (8, None, None),
        Message::Broadcast => (9, None, None),
        Message::TurnUndead => (10, None, None),
    };
    buf.put_u8(kind);
    if let Some(member) = member {
        put_identity(member, buf);
    }
    if let Some(number) = number {
        buf.put_u8(*number);
    }
}

/// The header alone.
///
/// # Errors
/// `Corrupt`.
pub(super) fn read_header(mut buf: impl Buf) -> Result<Header<Identity>> {
    let buf = &mut buf;
    Ok(Header {
        src: read_identity(buf)?,
        src_incarnation: buf.try_get_u16_le().map_err(ends)?,
        dst: read_identity(buf)?,
        message: read_message(buf)?,
    })
}

fn read_message(buf: &mut impl Buf) -> Result<Message<Identity>> {
    let kind = buf.try_get_u8().map_err(ends)?;
    let member = if (2..=5).contains(&kind) { Some(read_identity(buf)?) } else { None };
    let number = if kind <= 5 { buf.try_get_u8().map_err(ends)? } else { 0 };
    Ok(match (kind, member) {
        (0, None) => Message::Ping(number),
        (1, None) => Message::Ack(number),
        (2, Some(target)) => Message::PingReq { target, probe_number: number },
        (3, Some(origin)) => Message::IndirectPing { origin, probe_number: number },
        (4, Some(target)) => Message::IndirectAck { target, probe_number: number },
        (5, Some(origin)) => Message::ForwardedAck { origin, probe_number: number },
        (6, None) => Message::Announce,
        (7, None) => Message::Feed,
        (8, None) => Message::Gossip,
        (9, None) => Message::Broadcast,
        (10, None) => Message::TurnUndead,
        _ => return Err(Error::corrupt(format!("a datagram's message is of kind {kind}"))),
    })
}

fn read_identity(buf: &mut impl Buf) -> Result<Identity> {
    Ok(Identity {
        node: NodeId(buf.try_get_u16_le().map_err(ends)?),
        incarnation: buf.try_get_u64_le().map_err(ends)?,
        life: buf.try_get_u32_le().map_err(ends)?,
    })
}

fn read_member(mut buf: impl Buf) -> Result<Member<Identity>> {
    let identity = read_identity(&mut buf)?;
    let refutations = buf.try_get_u16_le().map_err(ends)?;
    let state = match buf.try_get_u8().map_err(ends)? {
        0 => State::Alive,
        1 => State::Suspect,
        2 => State::Down,
        other => return Err(Error::corrupt(format!("a datagram's member is in state {other}"))),
    };
    Ok(Member::new(identity, refutations, state))
}

fn ends(_: TryGetError) -> Error {
    Error::corrupt("a datagram ends too early")
}

/// All of a datagram, so that it can be looked at before SWIM does.
#[derive(Debug, PartialEq)]
pub(super) struct Packet<'a> {
    pub header: Header<Identity>,
    pub members: Vec<Member<Identity>>,
    pub rumours: Vec<&'a [u8]>,
}

impl<'a> Packet<'a> {
    /// # Errors
    /// `Corrupt`.
    pub fn read(mut bytes: &'a [u8]) -> Result<Self> {
        let header = read_header(&mut bytes)?;
        let mut packet = Self { header, members: Vec::new(), rumours: Vec::new() };
        if packet.has_members() && !bytes.is_empty() {
            let count = usize::from(bytes.try_get_u16().map_err(ends)?);
            if count * MEMBER_LEN > bytes.len() {
                return Err(Error::corrupt("a datagram has more members than bytes"));
            }
            packet.members = (0..count).map(|_| read_member(&mut bytes)).collect::<Result<_>>()?;
        }
        while !bytes.is_empty() {
            let len = usize::from(bytes.try_get_u16().map_err(ends)?);
            if len == 0 || len > bytes.len() {
                return Err(Error::corrupt("a datagram has a rumour longer than itself"));
            }
            let (rumour, rest) = bytes.split_at(len);
            packet.rumours.push(rumour);
            bytes = rest;
        }
        if !packet.has_members() && !packet.is_broadcast() && !packet.rumours.is_empty() {
            return Err(Error::corrupt("a datagram has rumours where none belong"));
        }
        Ok(packet)
    }

    /// The same as bytes.
    pub fn write(&self) -> Vec<u8> {
        let rumours: usize = self.rumours.iter().map(|rumour| 2 + rumour.len()).sum();
        let len = HEADER_LEN_MAX + 2 + self.members.len() * MEMBER_LEN + rumours;
        let mut bytes = Vec::with_capacity(len);
        put_identity(&self.header.src, &mut bytes);
        bytes.put_u16_le(self.header.src_incarnation);
        put_identity(&self.header.dst, &mut bytes);
        put_message(&self.header.message, &mut bytes);
        if self.has_members() {
            bytes.put_u16(self.members.len() as u16);
            self.members.iter().for_each(|member| put_member(member, &mut bytes));
        }
        for rumour in &self.rumours {
            bytes.put_u16(rumour.len() as u16);
            bytes.put_slice(rumour);
        }
        debug_assert!(bytes.len() <= len, "all of it was counted");
        bytes
    }

    fn is_broadcast(&self) -> bool {
        self.header.message == Message::Broadcast
    }

    fn has_members(&self) -> bool {
        match self.header.message {
            Message::Announce | Message::TurnUndead | Message::Broadcast => false,
            Message::Ping(_)
            | Message::Ack(_)
            | Message::PingReq { .. }
            | Message::IndirectPing { .. }
            | Message::IndirectAck { .. }
            | Message::ForwardedAck { .. }
            | Message::Feed
            | Message::Gossip => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(node: u16) -> Identity {
        Identity { node: NodeId(node), incarnation: 7 + u64::from(node), life: 1 }
    }

    fn messages() -> [Message<Identity>; 11] {
        let (target, origin, probe_number) = (identity(3), identity(4), 9);
        [
            Message::Ping(1),
            Message::Ack(2),
            Message::PingReq { target, probe_number },
            Message::IndirectPing { origin, probe_number },
            Message::IndirectAck { target, probe_number },
            Message::ForwardedAck { origin, probe_number },
            Message::Announce,
            Message::Feed,
            Message::Gossip,
            Message::Broadcast,
            Message::TurnUndead,
        ]
    }

    fn packet(message: Message<Identity>) -> Packet<'static> {
        let (src, dst) = (identity(1), identity(2));
        let header = Header { src, src_incarnation: 5, dst, message };
        let mut packet = Packet { header, members: Vec::new(), rumours: Vec::new() };
        if packet.has_members() {
            packet.members = vec![
                Member::new(identity(5), 1, State::Alive),
                Member::new(identity(6), 2, State::Suspect),
                Member::new(identity(7), 3, State::Down),
            ];
        }
        if packet.has_members() || packet.is_broadcast() {
            packet.rumours = vec![b"one", b"another"];
        }
        packet
    }

    #[test]
    fn every_packet_reads_back_as_it_was_written() {
        for message in messages() {
            let packet = packet(message);
            let bytes = packet.write();
            assert_eq!(Packet::read(&bytes).unwrap(), packet);
        }
    }

    #[test]
    fn any_bytes_give_a_packet_or_an_error() {
        for message in messages() {
            let bytes = packet(message).write();
            for end in 0..bytes.len() {
                if let Ok(shorter) = Packet::read(&bytes[..end]) {
                    assert!(shorter.rumours.len() < 2);
                }
            }
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0xFF;
                let _ = Packet::read(&damaged);
            }
        }
        assert!(Packet::read(&[0xFF; 1200]).is_err());
    }
}
