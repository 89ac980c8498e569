//! Tables without lines: columns that are as wide as they must be, numbers at the right. The cells that a terminal is too
//! narrow for stand beneath their row, each with the name of its column, and none is cut: ids are pasted.

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
/// What stands before the cells beneath a row, and between them.
const INDENT: &str = "  ";
const BETWEEN: &str = " · ";

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

    /// The line of its head, then the lines of each row, each with an end.
    pub fn blocks(&self, screen: Screen) -> Vec<String> {
        let fits = self.fits(screen.width());
        let drawn = self.draw(fits);
        let mut blocks: Vec<String> = drawn.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        for (block, row) in blocks.iter_mut().skip(1).zip(&self.rows) {
            block.push_str(&self.beneath(row, fits, screen));
        }
        blocks
    }

    /// How many columns fit beside each other; at least one.
    fn fits(&self, width: Option<usize>) -> usize {
        let widths = self.draw(self.columns.len()).column_max_content_widths();
        let ends = widths.into_iter().scan(0, |used, cell| {
            let end = *used + usize::from(cell);
            *used = end + usize::from(GAP);
            Some(end)
        });
        ends.take_while(|end| width.is_none_or(|width| *end <= width)).count().max(1)
    }

    /// The cells from that column on, each with its name, in lines that fit. What is empty is left out.
    fn beneath(&self, row: &[String], from: usize, screen: Screen) -> String {
        let cells = self.columns.iter().zip(row).skip(from).filter(|(_, cell)| !["", "–"].contains(&cell.as_str()));
        let mut lines: Vec<String> = Vec::new();
        for ((name, _), cell) in cells {
            let said = format!("{name} {cell}").trim_start().to_owned();
            let fits = |line: &String| {
                let length = [line, BETWEEN, &said].iter().map(|part| part.chars().count()).sum::<usize>();
                screen.width().is_none_or(|width| length <= width)
            };
            match lines.last_mut().filter(|line| fits(line)) {
                Some(line) => line.extend([BETWEEN, &said]),
                None => lines.push(format!("{INDENT}{said}")),
            }
        }
        lines.into_iter().map(|line| line + "\n").collect()
    }

    /// The first so many columns.
    fn draw(&self, columns: usize) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::NOTHING);
        table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
        table.set_header(self.columns[..columns].iter().map(|(name, _)| *name));
        for row in &self.rows {
            table.add_row(&row[..columns]);
        }
        for (column, (_, side)) in table.column_iter_mut().zip(&self.columns[..columns]) {
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
    fn what_does_not_fit_stands_beneath_its_row_with_its_name_and_nothing_is_cut() {
        let mut table =
            Table::new(&[("action", Side::Left), ("age", Side::Right), ("reason", Side::Left), ("", Side::Left)]);
        let id = "01a22dfb-3867-71f3-a8f1-1746c2b2fdb5";
        table.row([id.into(), "9 s".into(), "timeout".into(), "→ look at it".into()]);
        table.row([id.into(), "12 s".into(), "–".into(), String::new()]);
        let beneath =
            |lines: &str| format!("action                                 age\n{id}   9 s\n{lines}{id}  12 s\n");
        assert_eq!(table.show(Screen::of_width(42)), beneath("  reason timeout · → look at it\n"));
        assert_eq!(table.blocks(Screen::of_width(42)).len(), 3);
        assert!(
            table.show(Screen::of_width(1)).contains(&format!("{id}\n  age 9 s · reason timeout\n  → look at it\n"))
        );
    }
}
