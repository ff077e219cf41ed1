//! Prints tables of text.

use std::fmt;

/// Rows of cells, aligned by column: text to the left, figures to the right.
#[derive(Debug)]
pub(super) struct TextTable {
    /// Headings; a '>' at the begin marks a column of figures.
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Creates a table with headings that stand between " | ".
    pub(super) fn new(heads: &str) -> Self {
        Self { heads: heads.split(" | ").map(str::to_owned).collect(), rows: Vec::new() }
    }

    pub(super) fn extend_heads(&mut self, heads: impl IntoIterator<Item = String>) {
        self.heads.extend(heads);
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |head: &String| head.trim_start_matches('>').to_owned();
        let heads: Vec<String> = self.heads.iter().map(plain).collect();
        let width = |column: usize| {
            let all = self.rows.iter().filter_map(|row| row.get(column)).chain(heads.get(column));
            all.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, &width), head) in row.iter().zip(&widths).zip(&self.heads) {
                let cell = if head.starts_with('>') {
                    format!("  {cell:>width$}")
                } else {
                    format!("  {cell:<width$}")
                };
                line.push_str(&cell);
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stands_to_the_left_and_figures_to_the_right() {
        let mut table = TextTable::new("host | >time");
        table.row(vec!["größe".to_owned(), "1 ms".to_owned()]);
        table.row(vec!["b".to_owned(), "100 ms".to_owned()]);
        let lines = ["  host     time", "  größe    1 ms", "  b      100 ms", ""];
        assert_eq!(table.to_string(), lines.join("\n"));
    }
}
