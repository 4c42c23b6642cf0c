//! A scenario's text as words, numbers and signs, each with its place.
//!
//! Knows no statement; every expectation that fails becomes an error that names line, column, what
//! was expected and what is there.

use tyr_types::{Error, Result};

use super::quantity::{Micros, SHARES, SIZES, Share, Size, Span, TIMES, Unit};

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Word,
    Number,
    Sign,
    /// The end of a line, which ends a statement as `;` does.
    End,
}

#[derive(Clone, Copy, Debug)]
struct Piece<'a> {
    sort: Sort,
    text: &'a str,
    line: usize,
    column: usize,
}

/// The pieces of a text, read from the front.
pub struct Words<'a> {
    pieces: Vec<Piece<'a>>,
    at: usize,
}

impl<'a> Words<'a> {
    /// The pieces of `text`; what follows a `#` in a line is left out.
    pub fn new(text: &'a str) -> Self {
        let mut pieces = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let spoken = line.split('#').next().unwrap_or(line);
            cut(spoken, number + 1, &mut pieces);
            let column = spoken.trim_end().chars().count() + 1;
            pieces.push(Piece { sort: Sort::End, text: "", line: number + 1, column });
        }
        Self { pieces, at: 0 }
    }

    fn peek(&self) -> Option<Piece<'a>> {
        self.pieces.get(self.at).copied()
    }

    /// Whether the text is at its end.
    pub fn is_over(&self) -> bool {
        self.at >= self.pieces.len()
    }

    /// Whether the statement is at its end.
    pub fn is_statement_over(&self) -> bool {
        self.peek().is_none_or(|piece| piece.sort == Sort::End || piece.text == ";")
    }

    /// Goes past the end of the statement.
    ///
    /// # Errors
    /// When more of it is there.
    pub fn end_statement(&mut self) -> Result<()> {
        if !self.is_statement_over() {
            return self.expected("the end of the statement: a new line or ;");
        }
        self.at += 1;
        Ok(())
    }

    /// The error that something else was expected here.
    ///
    /// # Errors
    /// Always.
    pub fn expected<T>(&self, what: &str) -> Result<T> {
        let Some(piece) = self.peek().or(self.pieces.last().copied()) else {
            return Err(Error::invalid(format!("line 1, column 1: expected {what}")));
        };
        let found = match piece.sort {
            Sort::End => "the end of the line".to_owned(),
            Sort::Word | Sort::Number | Sort::Sign => {
                format!("\"{}\"", piece.text.escape_debug())
            }
        };
        let (line, column) = (piece.line, piece.column);
        Err(Error::invalid(format!("line {line}, column {column}: expected {what}, found {found}")))
    }

    /// The same, so many pieces before here.
    ///
    /// # Errors
    /// Always.
    pub fn expected_before<T>(&mut self, pieces: usize, what: &str) -> Result<T> {
        self.at -= pieces;
        self.expected(what)
    }

    /// Goes back before the piece just read.
    pub fn step_back(&mut self) {
        self.at -= 1;
    }

    /// Takes this word or sign if it is next.
    pub fn take(&mut self, text: &str) -> bool {
        let is_next = self.peek().is_some_and(|piece| piece.text == text);
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes this word or sign.
    ///
    /// # Errors
    /// When something else is next.
    pub fn require(&mut self, text: &str) -> Result<()> {
        if self.take(text) { Ok(()) } else { self.expected(text) }
    }

    /// Takes any word; `what` says which are expected.
    ///
    /// # Errors
    /// When no word is next.
    pub fn word(&mut self, what: &str) -> Result<&'a str> {
        match self.peek() {
            Some(Piece { sort: Sort::Word, text, .. }) => {
                self.at += 1;
                Ok(text)
            }
            Some(_) | None => self.expected(what),
        }
    }

    /// Whether a number is next.
    pub fn is_number_next(&self) -> bool {
        self.peek().is_some_and(|piece| piece.sort == Sort::Number)
    }

    /// Takes a whole number from `low` to `high`.
    ///
    /// # Errors
    /// When none is next.
    pub fn number(&mut self, low: u64, high: u64) -> Result<u64> {
        let what = format!("a whole number from {low} to {high}");
        let number = self.peek().and_then(|piece| piece.text.parse::<u64>().ok());
        match number {
            Some(number) if (low..=high).contains(&number) => {
                self.at += 1;
                Ok(number)
            }
            Some(_) | None => self.expected(&what),
        }
    }

    /// Takes a whole number or a span of two, from `low` to `high`.
    ///
    /// # Errors
    /// When none is next.
    pub fn numbers(&mut self, low: u16, high: u16) -> Result<Span<u16>> {
        let what = format!("a whole number from {low} to {high}, or two as 3..5");
        let ends = self.peek().and_then(|piece| {
            let (first, last) = piece.text.split_once("..").unwrap_or((piece.text, piece.text));
            Some(Span { low: first.parse().ok()?, high: last.parse().ok()? })
        });
        match ends {
            Some(ends) if low <= ends.low && ends.low <= ends.high && ends.high <= high => {
                self.at += 1;
                Ok(ends)
            }
            Some(_) | None => self.expected(&what),
        }
    }

    /// Takes a time: a number and a unit.
    ///
    /// # Errors
    /// When none is next.
    pub fn time(&mut self) -> Result<Micros> {
        let span = self.measure(&TIMES, "a time, as 30 s or 1.5 ms")?;
        match span.is_exact() {
            true => Ok(Micros(span.low)),
            false => self.expected_before(2, "one time, not a span"),
        }
    }

    /// Takes a time or a span of times with one unit.
    ///
    /// # Errors
    /// When none is next.
    pub fn times(&mut self) -> Result<Span<Micros>> {
        let span = self.measure(&TIMES, "a time, as 30 s, or a span of times, as 0.2..3 ms")?;
        Ok(Span { low: Micros(span.low), high: Micros(span.high) })
    }

    /// Takes a share.
    ///
    /// # Errors
    /// When none of at most 100 % is next.
    pub fn share(&mut self) -> Result<Share> {
        const WHAT: &str = "a share of at most 100 %, as 1.5 %";
        let span = self.measure(&SHARES, WHAT)?;
        match u32::try_from(span.high) {
            Ok(share) if span.is_exact() && share <= Share::WHOLE.0 => Ok(Share(share)),
            Ok(_) | Err(_) => self.expected_before(2, WHAT),
        }
    }

    /// Takes a size.
    ///
    /// # Errors
    /// When none is next.
    pub fn size(&mut self) -> Result<Size> {
        const WHAT: &str = "a size, as 4 KiB";
        let span = self.measure(&SIZES, WHAT)?;
        match span.is_exact() {
            true => Ok(Size(span.low)),
            false => self.expected_before(2, WHAT),
        }
    }

    /// Takes a number or a span, then one of these units; in the smallest of them.
    fn measure(&mut self, units: &[Unit], what: &str) -> Result<Span<u64>> {
        if let (Some(number), Some(name)) = (self.peek(), self.pieces.get(self.at + 1))
            && let Some(unit) = units.iter().find(|unit| unit.name == name.text)
        {
            let (first, last) = number.text.split_once("..").unwrap_or((number.text, number.text));
            if let (Some(low), Some(high)) = (scaled(first, unit.scale), scaled(last, unit.scale))
                && low <= high
            {
                self.at += 2;
                return Ok(Span { low, high });
            }
        }
        self.expected(what)
    }
}

/// `text`, a decimal number, times `scale`; `None` unless that is a whole number of 63 bits.
fn scaled(text: &str, scale: u64) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(decimals) || text.ends_with('.') {
        return None;
    }
    let mut value = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let mut place = scale;
    for digit in decimals.bytes().map(|byte| u64::from(byte - b'0')) {
        if digit > 0 && !place.is_multiple_of(10) {
            return None;
        }
        place /= 10;
        value = value.checked_add(digit * place)?;
    }
    i64::try_from(value).ok().map(|_| value)
}

fn cut<'a>(line: &'a str, number: usize, pieces: &mut Vec<Piece<'a>>) {
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (sort, len) = if first.is_ascii_digit() {
            (Sort::Number, length(rest, |c| c.is_ascii_digit() || c == '.'))
        } else if first.is_alphabetic() {
            (Sort::Word, length(rest, |c| c.is_alphanumeric() || c == '-' || c == '_'))
        } else {
            (Sort::Sign, first.len_utf8())
        };
        if !first.is_whitespace() {
            let column = line[..line.len() - rest.len()].chars().count() + 1;
            pieces.push(Piece { sort, text: &rest[..len], line: number, column });
        }
        rest = &rest[len..];
    }
}

fn length(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_units_may_touch() {
        assert_eq!(Words::new("30s").time().unwrap(), Micros::seconds(30));
        assert_eq!(Words::new("1.5%").share().unwrap(), Share(150));
        let span = Words::new("0.2..3 ms").times().unwrap();
        assert_eq!(span, Span { low: Micros(200), high: Micros(3_000) });
    }

    #[test]
    fn an_error_names_line_column_what_was_expected_and_what_is_there() {
        let mut words = Words::new("\n  soon");
        words.end_statement().unwrap();
        let error = words.time().unwrap_err();
        assert_eq!(
            error.message(),
            "line 2, column 3: expected a time, as 30 s or 1.5 ms, found \"soon\""
        );
    }

    #[test]
    fn numbers_that_are_none_are_refused_not_rounded() {
        for text in ["1.2.3 s", "0.0000001 s", "5..2 s", "1. s", ".5 s", "99999999999999999 s"] {
            assert!(Words::new(text).times().is_err(), "{text}");
        }
        assert!(Words::new("101 %").share().is_err());
        assert!(Words::new("1..2 s").time().is_err());
    }
}
