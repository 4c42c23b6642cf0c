//! What is around each datagram: which cluster, whose turn, and that nobody changed it.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | `TyrG` |
//! | 4 | version: 1 |
//! | 5 | 1: the sender suspects the receiver; else 0 |
//! | 6..8 | the refutation count that it suspects; 0 without |
//! | 8..24 | the cluster; 0 before it is known |
//! | 24..32 | number of the datagram, higher with each that this process sends |
//! | 32.. | SWIM's message ([`super::wire`]) |
//! | last 16 | the first half of an HMAC-SHA-256 of all before |
//!
//! Its key is made of the cluster's secret and number. Without a secret the key is made of the
//! number alone: it tells mistakes then, and no strangers.
//!
//! Must not know: what members say to each other.

use ring::hmac;

use super::statistics::Rejection;
use tyr_net::access::Key;

/// The longest datagram: what any network carries in one piece, 1280 bytes less the headers of
/// IPv6 and UDP.
pub(super) const DATAGRAM_LEN_MAX: usize = 1280 - 40 - 8;

const MAGIC: [u8; 4] = *b"TyrG";
const VERSION: u8 = 1;
const HEAD_LEN: usize = 32;
const TAG_LEN: usize = 16;

/// The longest message inside.
pub(super) const MESSAGE_LEN_MAX: usize = DATAGRAM_LEN_MAX - HEAD_LEN - TAG_LEN;

const _: () = assert!(HEAD_LEN + TAG_LEN < DATAGRAM_LEN_MAX);
const _: () = assert!(HEAD_LEN == MAGIC.len() + 1 + 1 + 2 + 16 + 8);

/// Closes what is sent, opens what comes.
pub(super) struct Seal {
    key: hmac::Key,
    cluster: u128,
    sequence: u64,
}

/// A datagram that is genuine.
#[derive(Debug)]
pub(super) struct Opened<'a> {
    pub sequence: u64,
    /// The sender suspects the receiver, at this refutation count.
    pub suspicion: Option<u16>,
    pub message: &'a [u8],
}

impl Seal {
    /// For a cluster, and its secret if it has one.
    pub fn new(cluster: Option<u128>, secret: Option<&Key>) -> Self {
        let cluster = cluster.unwrap_or(0);
        let secret = secret.map_or("", Key::as_str);
        let root = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let mut context = hmac::Context::with_key(&root);
        context.update(b"tyr gossip 1");
        context.update(&cluster.to_le_bytes());
        let key = hmac::Key::new(hmac::HMAC_SHA256, context.sign().as_ref());
        Self { key, cluster, sequence: 0 }
    }

    /// A datagram with this message.
    pub fn close(&mut self, suspicion: Option<u16>, message: &[u8]) -> Vec<u8> {
        debug_assert!(message.len() <= MESSAGE_LEN_MAX, "what is said fits a datagram");
        self.sequence += 1;
        let mut bytes = Vec::with_capacity(HEAD_LEN + message.len() + TAG_LEN);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[VERSION, u8::from(suspicion.is_some())]);
        bytes.extend_from_slice(&suspicion.unwrap_or(0).to_le_bytes());
        bytes.extend_from_slice(&self.cluster.to_le_bytes());
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        debug_assert_eq!(bytes.len(), HEAD_LEN, "a head has its length");
        bytes.extend_from_slice(message);
        let tag = hmac::sign(&self.key, &bytes);
        bytes.extend_from_slice(&tag.as_ref()[..TAG_LEN]);
        debug_assert!(bytes.len() <= DATAGRAM_LEN_MAX, "a datagram is bounded");
        bytes
    }

    /// What is in a datagram.
    ///
    /// # Errors
    /// Why it is none of ours.
    pub fn open<'a>(&self, bytes: &'a [u8]) -> Result<Opened<'a>, Rejection> {
        if !(HEAD_LEN + TAG_LEN..=DATAGRAM_LEN_MAX).contains(&bytes.len())
            || !bytes.starts_with(&MAGIC)
            || bytes[4] != VERSION
        {
            return Err(Rejection::Malformed);
        }
        let (signed, tag) = bytes.split_at(bytes.len() - TAG_LEN);
        if signed[8..24] != self.cluster.to_le_bytes() {
            return Err(Rejection::Cluster);
        }
        // In a time that does not depend on where they differ.
        let expected = hmac::sign(&self.key, signed);
        let differ = expected.as_ref().iter().zip(tag).fold(0, |sum, (a, b)| sum | (a ^ b));
        if differ != 0 {
            return Err(Rejection::Unauthentic);
        }
        let refutations = u16::from_le_bytes([signed[6], signed[7]]);
        let suspicion = match signed[5] {
            0 => None,
            1 => Some(refutations),
            _ => return Err(Rejection::Malformed),
        };
        let sequence = signed[24..32].try_into().expect("a range of 8 bytes");
        let sequence = u64::from_le_bytes(sequence);
        Ok(Opened { sequence, suspicion, message: &signed[HEAD_LEN..] })
    }
}

/// Which datagrams of one sender came already: the highest number, and which of the 64 up to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    incarnation: u64,
    highest: u64,
    /// Bit n: the datagram n below the highest.
    seen: u64,
}

impl Window {
    /// Whether the datagram is new; from then on it is not. One that 64 later ones overtook counts
    /// as old, and so does every one of an earlier incarnation.
    pub fn admit(&mut self, incarnation: u64, sequence: u64) -> bool {
        if incarnation < self.incarnation || sequence == 0 {
            return false;
        }
        if incarnation > self.incarnation {
            *self = Self { incarnation, highest: 0, seen: 0 };
        }
        debug_assert!(self.highest == 0 || self.seen & 1 == 1, "the highest has been seen");
        if sequence > self.highest {
            let ahead = u32::try_from(sequence - self.highest).unwrap_or(u32::MAX);
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.highest = sequence;
            return true;
        }
        let bit = u32::try_from(self.highest - sequence).ok().and_then(|n| 1u64.checked_shl(n));
        match bit {
            Some(bit) if self.seen & bit == 0 => {
                self.seen |= bit;
                true
            }
            Some(_) | None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_closed_opens_with_the_same_secret_and_cluster_only() {
        let secret = Key::of("secret");
        let mut ours = Seal::new(Some(1), Some(&secret));
        let bytes = ours.close(Some(3), b"message");
        let opened = ours.open(&bytes).unwrap();
        assert_eq!((opened.sequence, opened.suspicion), (1, Some(3)));
        assert_eq!(opened.message, b"message");
        let other = Seal::new(Some(2), Some(&secret));
        assert_eq!(other.open(&bytes).unwrap_err(), Rejection::Cluster);
        for secret in [None, Some(&Key::of("other"))] {
            let stranger = Seal::new(Some(1), secret);
            assert_eq!(stranger.open(&bytes).unwrap_err(), Rejection::Unauthentic);
        }
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_noticed() {
        for secret in [None, Some(&Key::of("secret"))] {
            let mut seal = Seal::new(None, secret);
            let bytes = seal.close(None, b"message");
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1;
                assert!(seal.open(&damaged).is_err(), "byte {at}");
                assert!(seal.open(&bytes[..at]).is_err(), "cut at {at}");
            }
        }
    }

    #[test]
    fn each_number_is_admitted_once_and_old_ones_never() {
        let mut window = Window::default();
        let given = [1, 3, 2, 3, 2, 100, 37, 36, 37, 1, 0];
        let admitted = given.map(|sequence| window.admit(5, sequence));
        let expected = [true, true, true, false, false, true, true, false, false, false, false];
        assert_eq!(admitted, expected);
        assert!(!window.admit(4, 200), "an earlier incarnation");
        assert!(window.admit(6, 1), "a later incarnation counts anew");
        assert!(!window.admit(5, 101));
    }
}
