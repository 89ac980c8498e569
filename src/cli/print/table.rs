//! Tables without lines: columns that are as wide as they must be, numbers at the right. What a terminal is too narrow
//! for goes on in the next line, head and rows alike, so that no cell is cut; ids are pasted.

use super::screen::Screen;

/// Where the cells of a column stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// The columns between two cells.
const GAP: u16 = 2;
/// How far the lines are indented that go on with a row.
const INDENT: usize = 2;

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
    pub fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    /// Its lines, each with an end.
    pub fn show(&self, screen: Screen) -> String {
        self.blocks(screen).concat()
    }

    /// The lines of its head, then those of each row, each with an end.
    pub fn blocks(&self, screen: Screen) -> Vec<String> {
        let mut blocks = vec![String::new(); self.rows.len() + 1];
        for (at, columns) in self.folds(screen.width()).into_iter().enumerate() {
            for (block, line) in blocks.iter_mut().zip(self.lines_of(columns)) {
                let indent = if at == 0 { 0 } else { INDENT };
                // Where nothing of a row is left nothing follows.
                if at == 0 || !line.is_empty() {
                    *block += &format!("{:indent$}{line}\n", "");
                }
            }
        }
        blocks
    }

    /// Which columns stand in the first line of a row, which in the second, and so on.
    fn folds(&self, width: Option<usize>) -> Vec<std::ops::Range<usize>> {
        let gap = usize::from(GAP);
        let widths = self.draw(0..self.columns.len()).column_max_content_widths();
        let (mut folds, mut begin, mut used) = (Vec::new(), 0, 0);
        for (at, cell) in widths.into_iter().map(usize::from).enumerate() {
            let is_too_wide = width.is_some_and(|width| used + cell > width);
            if at > begin && is_too_wide {
                folds.push(begin..at);
                (begin, used) = (at, INDENT);
            }
            used += cell + gap;
        }
        folds.push(begin..self.columns.len());
        folds
    }

    /// The head and the rows with these columns only, without blanks at their ends.
    fn lines_of(&self, columns: std::ops::Range<usize>) -> Vec<String> {
        self.draw(columns).lines().map(|line| line.trim_end().to_owned()).collect()
    }

    fn draw(&self, columns: std::ops::Range<usize>) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::NOTHING);
        table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
        table.set_header(self.columns[columns.clone()].iter().map(|(name, _)| *name));
        for row in &self.rows {
            table.add_row(&row[columns.clone()]);
        }
        for (column, (_, side)) in table.column_iter_mut().zip(&self.columns[columns]) {
            column.set_padding((0, GAP));
            column.set_cell_alignment(match side {
                Side::Left => comfy_table::CellAlignment::Left,
                Side::Right => comfy_table::CellAlignment::Right,
            });
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let mut table = Table::new(&[("operation", Side::Left), ("due", Side::Right), ("reason", Side::Left)]);
        table.row(["a".into(), "12".into(), String::new()]);
        table.row(["announcement.deliver".into(), "3".into(), "a long one".into()]);
        let lines =
            "operation             due  reason\na                      12\nannouncement.deliver    3  a long one\n";
        assert_eq!(table.show(Screen::plain()), lines);
        assert_eq!(table.show(Screen::of_width(37)), lines, "just wide enough");
    }

    #[test]
    fn what_does_not_fit_goes_on_in_the_next_line_and_nothing_is_cut() {
        let mut table = Table::new(&[("action", Side::Left), ("age", Side::Right), ("reason", Side::Left)]);
        let id = "01a22dfb-3867-71f3-a8f1-1746c2b2fdb5";
        table.row([id.into(), "9 s".into(), "timeout".into()]);
        table.row([id.into(), "12 s".into(), String::new()]);
        let folded =
            format!("action                                 age\n  reason\n{id}   9 s\n  timeout\n{id}  12 s\n");
        assert_eq!(table.show(Screen::of_width(42)), folded);
        assert_eq!(table.blocks(Screen::of_width(42)).len(), 3);
        assert!(table.show(Screen::of_width(1)).contains(id), "an id is whole on every screen");
    }
}
