//! The tables of `docs/scale.md`, as text.

use std::fmt::Write;

use super::Row;
use super::tally::{Kind, Spread, Tally};

/// All tables.
pub fn tables(rows: &[Row]) -> String {
    let mut text = String::new();
    let tables = [roles(rows), runs(rows), kinds(rows), variants(rows)];
    for table in tables {
        text.push_str(&table);
        text.push('\n');
    }
    text
}

fn ratio(spread: Spread) -> String {
    format!("{:.2} / {:.2}", spread.most, spread.least)
}

/// Adds a line; a `String` takes whatever comes.
fn line(text: &mut String, cells: std::fmt::Arguments<'_>) {
    writeln!(text, "{cells}").expect("a string can be written to");
}

/// The mean of each quarter of the nodes, low numbers first, over the mean of all.
fn quarters(all: &[f64]) -> String {
    let mean = |nodes: &[f64]| nodes.iter().sum::<f64>() / nodes.len().max(1) as f64;
    let quarter = |nodes: &[f64]| format!("{:.2}", mean(nodes) / mean(all));
    all.chunks(all.len().div_ceil(4)).map(quarter).collect::<Vec<_>>().join(" ")
}

fn roles(rows: &[Row]) -> String {
    let mut text = String::from(
        "On paper, most / least of the mean of a node:\n\n\
         | nodes | blobs | chain mean | chain most | ring | chains | authority | head | tail |\n\
         |--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for row in rows {
        let paper = &row.variants[0].paper;
        line(
            &mut text,
            format_args!(
                "| {} | {} | {:.1} | {} | {} | {} | {} | {} | {} |",
                row.nodes,
                row.written,
                paper.each(paper.hops),
                paper.hops_most,
                ratio(row.ring),
                ratio(paper.spread(|load| load.chains as f64)),
                ratio(paper.spread(|load| load.authorities as f64)),
                ratio(paper.spread(|load| load.heads as f64)),
                ratio(paper.spread(|load| load.tails as f64)),
            ),
        );
    }
    text
}

fn runs(rows: &[Row]) -> String {
    let mut text = String::from(
        "In a run, for each transaction; spread is most / least of the mean of a node:\n\n\
         | nodes | blobs | transactions | aborted | messages | bytes | delays mean | delays p99 | \
         messages spread | bytes spread | records spread | messages by quarter of the nodes | \
         bytes by quarter |\n\
         |--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|---|\n",
    );
    for row in rows {
        let (run, tally) = (&row.run, &row.run.tally);
        let bytes = tally.bytes.iter().sum::<u64>() - tally.bytes[Kind::Lease as usize];
        let messages = Tally::each_node(row.nodes, &tally.messages_at_node());
        let bytes_at = Tally::each_node(row.nodes, &tally.bytes_at_node);
        line(
            &mut text,
            format_args!(
                "| {} | {} | {} | {} | {:.1} | {:.0} | {:.1} | {:.0} | {} | {} | {} | {} | {} |",
                row.nodes,
                row.written,
                run.committed.len(),
                run.aborted,
                run.each(tally.about_transactions()),
                run.each(bytes),
                run.mean_delays(),
                run.percentile(99),
                ratio(Spread::of(messages.iter().copied())),
                ratio(Spread::of(bytes_at.iter().copied())),
                ratio(Spread::of(Tally::each_node(row.nodes, &tally.records).into_iter())),
                quarters(&messages),
                quarters(&bytes_at),
            ),
        );
    }
    text
}

fn kinds(rows: &[Row]) -> String {
    let mut text =
        String::from("In a run, messages of each kind for each transaction x bytes:\n\n");
    let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    line(&mut text, format_args!("| nodes | blobs | {} |", names.join(" | ")));
    line(&mut text, format_args!("|--:|--:|{}", "--:|".repeat(names.len())));
    for row in rows {
        let tally = &row.run.tally;
        let cell = |kind: &Kind| {
            let each = row.run.each(tally.messages[*kind as usize]);
            format!("{each:.2} x {:.0}", tally.bytes_each(*kind))
        };
        let cells: Vec<String> = Kind::ALL.iter().map(cell).collect();
        line(
            &mut text,
            format_args!("| {} | {} | {} |", row.nodes, row.written, cells.join(" | ")),
        );
    }
    text
}

fn variants(rows: &[Row]) -> String {
    let mut text = String::from(
        "On paper, what could be otherwise; most / least of the mean of a node:\n\n\
         | nodes | blobs | lanes | told by | visits | messages | delays | authority | head | \
         tail | decided | messages | bytes |\n\
         |--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for row in rows {
        for variant in &row.variants {
            let paper = &variant.paper;
            line(
                &mut text,
                format_args!(
                    "| {} | {} | {} | {} | {:.1} | {:.1} | {:.1} | {} | {} | {} | {} | {} | {} |",
                    row.nodes,
                    row.written,
                    variant.lanes,
                    variant.telling.name(),
                    paper.each(paper.hops),
                    paper.each(paper.messages.iter().sum()),
                    paper.each(paper.delays),
                    ratio(paper.spread(|load| load.authorities as f64)),
                    ratio(paper.spread(|load| load.heads as f64)),
                    ratio(paper.spread(|load| load.tails as f64)),
                    ratio(paper.spread(|load| load.messages[Kind::Decided as usize] as f64)),
                    ratio(paper.spread(|load| load.all_messages())),
                    ratio(paper.spread(|load| load.bytes)),
                ),
            );
        }
    }
    text
}
