//! Comma-separated values: a header, every digit, quotes where needed.

use super::Rows;

/// The rows as CSV.
pub fn write(rows: &Rows) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in std::iter::once(&rows.heads.iter().map(|head| (*head).to_owned()).collect())
        .chain(&rows.rows)
    {
        let row: &Vec<String> = row;
        writer.write_record(row).expect("a Vec takes any bytes, and all rows have equal lengths");
    }
    let bytes = writer.into_inner().expect("a Vec takes any bytes");
    String::from_utf8(bytes).expect("the cells are UTF-8")
}
