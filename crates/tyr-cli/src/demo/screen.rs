//! The demo on a terminal: a frame becomes a picture.

use std::time::Duration;

use ratatui::Frame as Canvas;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table};
use ratatui::{DefaultTerminal, try_init};

use super::frame::Frame;
use crate::data::size_text;

/// The terminal, drawn on until it is dropped.
pub struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    /// Takes the terminal; none when it cannot be drawn on.
    pub fn open() -> Option<Self> {
        Some(Self { terminal: try_init().ok()? })
    }

    /// Waits that long for a key; answers whether there was one.
    pub fn wait_for_key(&mut self, time: Duration) -> bool {
        let is_ready = event::poll(time).unwrap_or(false);
        let pressed = |event| matches!(event, Event::Key(key) if key.kind == KeyEventKind::Press);
        is_ready && event::read().is_ok_and(pressed)
    }

    /// Draws.
    ///
    /// A terminal that does not take it is gone; the demo goes on without.
    pub fn draw(&mut self, frame: &Frame, left: Duration) {
        let _ = self.terminal.draw(|canvas| paint(canvas, frame, left));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn paint(canvas: &mut Canvas<'_>, frame: &Frame, left: Duration) {
    let [head, rates, numbers, top, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(5),
        Constraint::Length(9),
        Constraint::Max(14),
        Constraint::Length(1),
    ])
    .areas(canvas.area());
    let title = Line::from(vec![
        Span::styled(" Týr ", Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)),
        Span::raw(" every measurement one transaction; every audit one snapshot"),
    ]);
    canvas.render_widget(title, head);
    paint_rates(canvas, frame, rates);
    let [store, audits] =
        Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(numbers);
    paint_numbers(canvas, frame, store);
    paint_audits(canvas, frame, audits);
    paint_top(canvas, frame, top);
    let text =
        format!(" {:.0} s left; any key ends it and verifies everything", left.as_secs_f64());
    canvas.render_widget(Line::styled(text, Style::new().fg(Color::DarkGray)), foot);
}

fn paint_rates(canvas: &mut Canvas<'_>, frame: &Frame, area: Rect) {
    let title = format!(" {:.0} measurements a second ", frame.rate);
    let width = usize::from(area.width.saturating_sub(2));
    let newest = frame.rates.len().saturating_sub(width);
    let chart = Sparkline::default()
        .block(Block::bordered().title(title))
        .style(Style::new().fg(Color::Cyan))
        .data(frame.rates[newest..].iter().copied());
    canvas.render_widget(chart, area);
}

fn paint_numbers(canvas: &mut Canvas<'_>, frame: &Frame, area: Rect) {
    let counted = &frame.statistics;
    let rows = [
        ("measurements", frame.measurements.to_string()),
        ("of this machine", frame.live.to_string()),
        ("transaction, p50", format!("{:.0} µs", frame.p50_us)),
        ("transaction, p99", format!("{:.0} µs", frame.p99_us)),
        ("versions held", counted.versions_held.to_string()),
        ("memory", size_text(counted.memory_bytes)),
        ("log", size_text(counted.log_bytes)),
    ];
    pairs(canvas, " store ", &rows, area, Style::new());
}

fn paint_audits(canvas: &mut Canvas<'_>, frame: &Frame, area: Rect) {
    let audited = &frame.audited;
    let rows = [
        ("aggregates compared", audited.audits.to_string()),
        ("windows compared", audited.slots.to_string()),
        ("measurements under them", audited.measurements.to_string()),
        ("differences", audited.differences.to_string()),
        ("snapshots in use", frame.statistics.snapshots_in_use.to_string()),
        ("aborted transactions", frame.statistics.aborts.to_string()),
    ];
    let color = if audited.differences == 0 { Color::Green } else { Color::Red };
    pairs(canvas, " audits ", &rows, area, Style::new().fg(color));
}

fn pairs(canvas: &mut Canvas<'_>, title: &str, rows: &[(&str, String)], area: Rect, style: Style) {
    let rows = rows.iter().map(|(name, value)| Row::new([(*name).to_owned(), value.clone()]));
    let widths = [Constraint::Length(24), Constraint::Min(10)];
    let table = Table::new(rows, widths).style(style).block(Block::bordered().title(title));
    canvas.render_widget(table, area);
}

fn paint_top(canvas: &mut Canvas<'_>, frame: &Frame, area: Rect) {
    let block = Block::bordered().title(" top of the last two minutes, by mean ");
    if frame.top.is_empty() {
        canvas.render_widget(Paragraph::new("…").block(block), area);
        return;
    }
    let rows = frame.top.iter().map(|line| {
        Row::new([
            format!("{} of {} {}", line.parameter, line.what, line.name),
            format!("{:>12.2}", line.mean),
            format!("{:>12.2}", line.max),
            format!("{:>9}", line.count),
        ])
    });
    let heads = ["series", "        mean", "     largest", "    count"];
    let widths = [
        Constraint::Min(30),
        Constraint::Length(12),
        Constraint::Length(12),
        Constraint::Length(9),
    ];
    let head = Row::new(heads).style(Style::new().add_modifier(Modifier::BOLD));
    canvas.render_widget(Table::new(rows, widths).header(head).block(block), area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::demo::frame::tests::sample;

    fn painted(width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|canvas| paint(canvas, &sample(), Duration::from_secs(17))).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_picture_shows_rates_latencies_audits_and_top_series() {
        let picture = painted(100, 40);
        for part in ["41000 measurements", "123456", "99 µs", "17", "42", "rustc", "17 s left"] {
            assert!(picture.contains(part), "{part} in\n{picture}");
        }
    }

    #[test]
    fn a_tiny_terminal_is_drawn_on_all_the_same() {
        painted(20, 5);
        painted(1, 1);
    }
}
