//! Datagrams built byte by byte from the format, and what becomes of them.

use super::*;

/// Builds XDR by hand, independent of the decoder.
#[derive(Clone, Default)]
pub struct Xdr(pub Vec<u8>);

impl Xdr {
    pub fn int(mut self, number: i32) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub fn string(self, text: &str) -> Self {
        let mut xdr = self.int(i32::try_from(text.len()).unwrap());
        xdr.0.extend(text.as_bytes());
        xdr.0.resize(xdr.0.len().next_multiple_of(4), 0);
        xdr
    }

    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
}

/// A datagram of the C++ client with a value of every type, taken at a given time.
pub fn every_type() -> Xdr {
    Xdr::default()
        .string("v:2.2.8_cppp:secret")
        .int(77)
        .int(1_999_999_999)
        .string("Batch_Nodes")
        .string("node17")
        .int(6)
        .string("load1")
        .int(5)
        .bytes(&0.75_f64.to_be_bytes())
        .string("cpu")
        .int(4)
        .bytes(&12.5_f32.to_be_bytes())
        .string("processes")
        .int(2)
        .int(-3)
        .string("bytes")
        .int(3)
        .bytes(&(1_i64 << 40).to_be_bytes())
        .string("state")
        .int(0)
        .string("busy")
        .string("last")
        .int(2)
        .int(9)
        .int(1_700_000_000)
}

#[test]
fn a_datagram_with_every_type_is_read_as_it_was_built() {
    let datagram = decode(&every_type().0, None).unwrap();
    assert_eq!((datagram.cluster.as_str(), datagram.node.as_str()), ("Batch_Nodes", "node17"));
    let values: Vec<(&str, Value)> =
        datagram.parameters.iter().map(|p| (p.name.as_str(), p.value)).collect();
    assert_eq!(
        values,
        [
            ("load1", Value::Number(0.75)),
            ("cpu", Value::Number(12.5)),
            ("processes", Value::Number(-3.0)),
            ("bytes", Value::Number((1_u64 << 40) as f64)),
            ("state", Value::Text),
            ("last", Value::Number(9.0)),
        ]
    );
    assert_eq!(datagram.time_us, Some(1_700_000_000_000_000));
}

#[test]
fn clients_older_than_2_2_send_neither_instance_nor_sequence() {
    let tail = |xdr: Xdr| xdr.string("c").string("n").int(1).string("x").int(2).int(5);
    let old = tail(Xdr::default().string("v:1.7.2_jp:"));
    assert_eq!(decode(&old.0, None).unwrap().cluster, "c");
    let oldest = Xdr::default().string("c").string("n").int(1).string("x").int(2).int(5);
    let datagram = decode(&oldest.clone().int(1_700_000_000).0, None).unwrap();
    assert_eq!((datagram.cluster.as_str(), datagram.time_us), ("c", None));
    let python = tail(Xdr::default().string("v:2.2.20_pyp:").int(1).int(2));
    assert_eq!(decode(&python.0, None).unwrap().node, "n");
}

#[test]
fn only_the_right_password_is_admitted_where_one_is_set() {
    let bytes = every_type().0;
    decode(&bytes, Some("secret")).unwrap();
    assert_eq!(decode(&bytes, Some("other")), Err(MalformedDatagram::WrongPassword));
    let without = Xdr::default().string("c").string("n").int(0);
    assert_eq!(decode(&without.0, Some("secret")), Err(MalformedDatagram::WrongPassword));
}

#[test]
fn a_datagram_cut_anywhere_is_an_error_or_lacks_only_its_time() {
    let whole = every_type().0;
    for len in 0..whole.len() {
        match decode(&whole[..len], None) {
            Ok(datagram) => {
                assert_eq!(len, whole.len() - 4, "cut at {len}");
                assert_eq!(datagram.time_us, None);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn any_single_wrong_byte_gives_a_datagram_or_an_error() {
    let whole = every_type().0;
    for at in 0..whole.len() {
        for wrong in [0, 1, 0x7F, 0x80, 0xFF] {
            let mut bytes = whole.clone();
            bytes[at] = wrong;
            if let Ok(datagram) = decode(&bytes, None) {
                assert!(datagram.parameters.len() * 12 <= bytes.len());
            }
        }
    }
}

#[test]
fn lengths_and_types_beyond_the_format_are_refused() {
    let long = Xdr::default().int(i32::MAX);
    assert!(matches!(decode(&long.0, None), Err(MalformedDatagram::LongString { .. })));
    let unknown = Xdr::default().string("c").string("n").int(1).string("x").int(1).int(0);
    assert!(matches!(
        decode(&unknown.0, None),
        Err(MalformedDatagram::UnknownType { code: 1, .. })
    ));
}

#[test]
fn what_follows_a_nameless_parameter_is_not_read_but_counted() {
    let head = |count| Xdr::default().string("c").string("n").int(count).string("x").int(2).int(5);
    let named = head(3).string("").int(2).int(5).string("y").int(2).int(6);
    let datagram = decode(&named.0, None).unwrap();
    assert_eq!((datagram.parameters.len(), datagram.unread), (1, 2));
    // A number that no datagram has room for counts as those that it has room for.
    let claimed = head(i32::MAX).string("").int(2).int(5);
    assert_eq!(decode(&claimed.0, None).unwrap().unread, 1);
}
