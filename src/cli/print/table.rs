//! Tables without lines: columns that are as wide as they must be, numbers at the right.

use std::fmt::Write as _;

/// Where the cells of a column stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table in the making.
pub struct Table {
    columns: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these columns.
    pub fn new(columns: &[(&'static str, Side)]) -> Self {
        Self { columns: columns.to_vec(), rows: vec![] }
    }

    /// One more row; a cell for each column.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// Its lines, the head first, each with an end.
    pub fn show(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::NOTHING);
        table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
        table.set_header(self.columns.iter().map(|(name, _)| *name));
        for row in &self.rows {
            table.add_row(row);
        }
        for (column, (_, side)) in table.column_iter_mut().zip(&self.columns) {
            column.set_padding((0, 2));
            column.set_cell_alignment(match side {
                Side::Left => comfy_table::CellAlignment::Left,
                Side::Right => comfy_table::CellAlignment::Right,
            });
        }
        let mut out = String::new();
        for line in table.lines() {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let mut table = Table::new(&[("operation", Side::Left), ("due", Side::Right)]);
        table.row(["a".into(), "12".into()]);
        table.row(["announcement.deliver".into(), "3".into()]);
        assert_eq!(table.show(), "operation             due\na                      12\nannouncement.deliver    3\n");
    }
}
