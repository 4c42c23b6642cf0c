//! What commands print: text for people, one JSON object a line for programs, raw bytes for pipes.
//!
//! A command says what happened once, in both forms; which one is printed is decided here. Every
//! write can fail (a pipe whose reader left), so nothing prints by macro.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Stdout, Write};

use serde_json::Value;

use crate::failure::{Failure, Outcome};

/// Bytes gathered before they go to standard output.
const BUFFER_LEN: usize = 64 << 10;

/// Standard output, in the form that the user chose.
pub struct Output {
    is_json: bool,
    out: BufWriter<Stdout>,
}

impl Output {
    /// Text, or JSON.
    pub fn new(is_json: bool) -> Self {
        Self { is_json, out: BufWriter::with_capacity(BUFFER_LEN, io::stdout()) }
    }

    /// Whether the user wants JSON.
    pub fn is_json(&self) -> bool {
        self.is_json
    }

    /// One result: a JSON line, or the text (which may have several lines, or none).
    pub fn record(&mut self, value: &Value, text: &str) -> Outcome {
        if self.is_json {
            return self.json(value);
        }
        if text.is_empty() {
            return Ok(());
        }
        self.line(text)
    }

    /// A line of text, whatever the form.
    pub fn line(&mut self, text: &str) -> Outcome {
        writeln!(self.out, "{text}").map_err(Failure::Output)
    }

    /// A JSON line, whatever the form.
    pub fn json(&mut self, value: &Value) -> Outcome {
        serde_json::to_writer(&mut self.out, value)
            .map_err(io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"))
            .map_err(Failure::Output)
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Outcome {
        self.out.write_all(bytes).map_err(Failure::Output)
    }

    /// Hands everything over.
    pub fn flush(&mut self) -> Outcome {
        self.out.flush().map_err(Failure::Output)
    }
}

/// Rows in columns as wide as they need; the columns named in `right` are aligned right.
pub fn table(heads: &[&str], rows: &[Vec<String>], right: &[usize]) -> String {
    let mut widths: Vec<usize> = heads.iter().map(|head| head.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    for row in std::iter::once(&heads).chain(rows) {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
            let gap = if column == 0 { "" } else { "  " };
            let (before, after) = if right.contains(&column) { (&*pad, "") } else { ("", &*pad) };
            write!(line, "{gap}{before}{cell}{after}").expect("a String takes any text");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = vec![vec!["a".to_owned(), "1".to_owned()], vec!["lönger".into(), "200".into()]];
        assert_eq!(table(&["name", "n"], &rows, &[1]), "name      n\na         1\nlönger  200");
    }

    #[test]
    fn a_table_without_rows_is_its_head() {
        assert_eq!(table(&["name", "size"], &[], &[]), "name  size");
    }
}
