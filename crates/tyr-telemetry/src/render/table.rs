//! Aligned columns for the eye: numbers to the right, shortened to the digits that count.

use super::{Rows, format_number};

/// The rows as a table.
pub fn write(rows: &Rows) -> String {
    let mut text = String::new();
    if !rows.rows.is_empty() {
        let cells: Vec<Vec<String>> =
            rows.rows.iter().map(|row| row.iter().map(|cell| shorten(cell)).collect()).collect();
        let mut widths: Vec<usize> = rows.heads.iter().map(|head| head.chars().count()).collect();
        for row in &cells {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let is_number: Vec<bool> = (0..widths.len())
            .map(|at| rows.rows.iter().all(|row| row[at].parse::<f64>().is_ok()))
            .collect();
        let heads: Vec<String> = rows.heads.iter().map(|head| (*head).to_owned()).collect();
        for row in std::iter::once(&heads).chain(&cells) {
            let mut line = String::new();
            for ((cell, width), is_number) in row.iter().zip(&widths).zip(&is_number) {
                let padding = " ".repeat(width - cell.chars().count());
                let (before, after) =
                    if *is_number { (padding, String::new()) } else { (String::new(), padding) };
                line.push_str(&format!("{before}{cell}{after}  "));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    if let Some(note) = &rows.note {
        text.push_str(note);
        text.push('\n');
    }
    if text.is_empty() {
        text.push_str("Nothing.\n");
    }
    text
}

/// A number with the digits that count; other text without what would break the line.
fn shorten(cell: &str) -> String {
    match cell.parse::<f64>() {
        Ok(number) => format_number(number),
        Err(_) => cell.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect(),
    }
}
