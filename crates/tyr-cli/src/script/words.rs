//! Words of a script line: separated by blanks, `#` starts a comment, quotes keep blanks.
//!
//! `"..."` knows `\n \r \t \0 \\ \" \xNN`, and `\T` for 16 bytes that the commit timestamp will
//! fill; `'...'` takes everything as it stands. A bare word may be `hex:...` or `base64:...`; a
//! quoted one never is, so that any text can be given.

use tyr::{Data, Error, Result, Stamped, limits};

use crate::data;

/// One word of a line.
#[derive(Debug, PartialEq)]
pub enum Word {
    /// As it stands; may carry a `hex:` or `base64:` prefix.
    Bare(String),
    /// What the quotes held, escapes resolved. `\xNN` makes any byte, so it need not be text.
    Quoted(Vec<u8>),
    /// The same, with zeros where `\T` stood.
    Stamped {
        /// The bytes.
        bytes: Vec<u8>,
        /// Where stamps begin in them.
        places: Vec<usize>,
    },
}

impl Word {
    /// The bytes it stands for.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        match self {
            Self::Bare(text) => data::parse_bytes(text),
            Self::Quoted(bytes) => Ok(bytes.clone()),
            Self::Stamped { .. } => Err(misplaced_stamp()),
        }
    }

    /// What it has to be written, perhaps with stamps.
    pub fn data(&self) -> Result<Data> {
        match self {
            Self::Bare(_) | Self::Quoted(_) => self.bytes().map(Data::from),
            Self::Stamped { bytes, places } => {
                Stamped::new(bytes.clone(), places.iter().copied()).map(Data::from)
            }
        }
    }

    /// It as text.
    pub fn text(&self) -> Result<&str> {
        match self {
            Self::Bare(text) => Ok(text),
            Self::Quoted(bytes) => std::str::from_utf8(bytes)
                .map_err(|_| Error::invalid("a name or number must be text, not binary")),
            Self::Stamped { .. } => Err(misplaced_stamp()),
        }
    }

    /// It as an offset or a length, with or without a unit.
    pub fn count(&self) -> Result<u64> {
        data::parse_size(self.text()?).map_err(Error::invalid)
    }
}

fn misplaced_stamp() -> Error {
    Error::invalid("\\T, the commit timestamp, is for what is put, written or appended")
}

/// The words of `line`.
///
/// # Errors
/// `InvalidArgument` for quotes that do not close and unknown escapes.
pub fn split(line: &str) -> Result<Vec<Word>> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '#' => break,
            '"' => quoted(&rest[1..])?,
            '\'' => verbatim(&rest[1..])?,
            _ => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (Word::Bare(rest[..end].to_owned()), &rest[end..])
            }
        };
        if after.starts_with(|next: char| !next.is_whitespace()) {
            return Err(Error::invalid("a blank must follow a closing quote"));
        }
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

fn verbatim(rest: &str) -> Result<(Word, &str)> {
    let (inside, after) =
        rest.split_once('\'').ok_or_else(|| Error::invalid("a ' quote does not close"))?;
    Ok((Word::Quoted(inside.as_bytes().to_vec()), after))
}

fn quoted(rest: &str) -> Result<(Word, &str)> {
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    let mut chars = rest.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => {
                let word = match places.is_empty() {
                    true => Word::Quoted(bytes),
                    false => Word::Stamped { bytes, places },
                };
                return Ok((word, &rest[at + 1..]));
            }
            '\\' => match chars.next().map(|(_, escaped)| escaped) {
                Some('n') => bytes.push(b'\n'),
                Some('r') => bytes.push(b'\r'),
                Some('t') => bytes.push(b'\t'),
                Some('0') => bytes.push(0),
                Some('T') => {
                    places.push(bytes.len());
                    bytes.extend([0; limits::STAMP_LEN]);
                }
                Some(same @ ('\\' | '"')) => bytes.push(same as u8),
                Some('x') => {
                    let digits: String = chars.by_ref().take(2).map(|(_, digit)| digit).collect();
                    bytes.extend(
                        data::parse_hex(&digits)
                            .map_err(|error| error.context("\\x takes two hexadecimal digits"))?,
                    );
                }
                Some(other) => {
                    return Err(Error::invalid(format!(
                        "\\{} is no escape; there are \\n \\r \\t \\0 \\\\ \\\" \\xNN \\T",
                        other.escape_debug()
                    )));
                }
                None => break,
            },
            other => bytes.extend(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Err(Error::invalid("a \" quote does not close"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(line: &str) -> Vec<Vec<u8>> {
        split(line).unwrap().iter().map(|word| word.bytes().unwrap()).collect()
    }

    #[test]
    fn blanks_separate_and_quotes_keep_them() {
        assert_eq!(bytes("  a\tb  'c d' \"e f\" "), [&b"a"[..], b"b", b"c d", b"e f"]);
        assert_eq!(bytes("\"\" ''"), [b"", b""]);
        assert_eq!(bytes(""), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn comments_run_to_the_end_of_the_line_unless_inside_a_word() {
        assert_eq!(bytes("a # b"), [b"a"]);
        assert_eq!(bytes("a#b '# c'"), [&b"a#b"[..], b"# c"]);
        assert_eq!(bytes("# only"), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn escapes_make_any_byte() {
        assert_eq!(bytes(r#""\n\r\t\0\\\"\xff""#), [[10, 13, 9, 0, 92, 34, 255]]);
        assert_eq!(bytes(r"'\n'"), [br"\n"]);
    }

    #[test]
    fn the_commit_timestamp_has_its_place_in_data_and_nowhere_else() {
        let words = split(r#""a\T\Tb" "\T""#).unwrap();
        let stamped = Stamped::new([&b"a"[..], &[0; 32], b"b"].concat(), [1, 17]).unwrap();
        assert_eq!(words[0].data().unwrap(), Data::from(stamped));
        assert!(words[1].bytes().unwrap_err().message().contains("put, written or appended"));
        assert!(words[1].text().is_err());
        let many = format!("\"{}\"", r"\T".repeat(17));
        assert!(split(&many).unwrap()[0].data().unwrap_err().message().contains("1 to 16"));
        assert_eq!(split(r"'\T'").unwrap()[0].data().unwrap(), Data::from(r"\T"));
    }

    #[test]
    fn only_bare_words_are_decoded() {
        assert_eq!(bytes("hex:6162 'hex:6162' base64:YWI="), [&b"ab"[..], b"hex:6162", b"ab"]);
    }

    #[test]
    fn what_does_not_close_or_means_nothing_is_refused() {
        for bad in ["'a", "\"a", "\"\\", "\"\\q\"", "\"\\x1\"", "\"a\"b", "\"\\xzz\""] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }
}
