//! The cells of a table of a document as they come, row by row, with those that span several rows or columns.

use crate::read::composer::Composer;
use crate::read::document::Refusal;
use crate::read::table::{Header, Table};

/// Cells of a table at most: each takes some 24 bytes and as few as five in the document.
const CELLS_MAX: usize = 1 << 20;

/// Bytes of a cell that only a frame around text has.
const CELL_BYTES: usize = 2000;

/// A table in the making.
#[derive(Debug, Default)]
pub struct Grid {
    rows: Vec<Vec<String>>,
    /// Whether it is a frame around text or other tables, and its cells are blocks.
    pub is_frame: bool,
    has_header: bool,
    cells: usize,
    carried: Vec<(usize, String)>,
    span: (usize, usize),
    is_open: bool,
}

impl Grid {
    /// Begins a row.
    pub fn row(&mut self) {
        self.close_cell();
        self.close_row();
        if !self.is_frame {
            self.rows.push(Vec::new());
        }
    }

    /// Begins a cell over so many columns and rows.
    ///
    /// # Errors
    /// [`Refusal::TooLong`] when the table has too many cells.
    pub fn cell(&mut self, is_header: bool, columns: usize, rows: usize) -> Result<(), Refusal> {
        self.close_cell();
        if self.is_frame {
            return Ok(());
        }
        self.cells += columns;
        if self.cells > CELLS_MAX {
            return Err(Refusal::TooLong);
        }
        if self.rows.is_empty() {
            self.rows.push(Vec::new());
        }
        self.has_header |= is_header && self.rows.len() == 1;
        self.carry();
        if let Some(row) = self.rows.last_mut() {
            row.push(String::new());
            self.span = (columns, rows);
            self.is_open = true;
        }
        Ok(())
    }

    /// The first row names the columns, as the document says.
    pub fn mark_header(&mut self) {
        self.has_header = true;
    }

    /// The cell that is open spans so many columns.
    pub fn widen(&mut self, columns: usize) {
        self.span.0 = columns.max(1);
    }

    /// Its cells become blocks, and what follows as well: it only places things.
    ///
    /// # Errors
    /// [`Refusal::TooLong`].
    pub fn leave(&mut self, composer: &mut Composer) -> Result<(), Refusal> {
        self.is_frame = true;
        std::mem::take(&mut self.rows).iter().flatten().try_for_each(|cell| composer.block(cell))
    }

    /// Adds words to the cell that is open; words between cells are a cell.
    pub fn put(&mut self, words: &str) {
        if self.rows.is_empty() {
            self.rows.push(Vec::new());
        }
        let Some(row) = self.rows.last_mut() else { return };
        match row.last_mut() {
            Some(cell) => {
                if !cell.is_empty() {
                    cell.push('\n');
                }
                cell.push_str(words.trim());
            }
            None => row.push(words.trim().to_owned()),
        }
    }

    /// Writes the table, or its cells where it is none.
    ///
    /// # Errors
    /// [`Refusal::TooLong`].
    pub fn write(mut self, composer: &mut Composer) -> Result<(), Refusal> {
        self.close_cell();
        self.close_row();
        let is_frame = self.rows.iter().flatten().any(|cell| cell.len() > CELL_BYTES);
        let header = if self.has_header { Header::First } else { Header::Likely };
        match Table::new(self.rows.clone(), header).filter(|_| !is_frame) {
            Some(table) => composer.table(&table),
            None => self.rows.iter().flatten().try_for_each(|cell| composer.block(cell)),
        }
    }

    /// Fills the columns beside the cell that it spans, and remembers it for the rows below.
    fn close_cell(&mut self) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let (columns, rows) = self.span;
        let Some(row) = self.rows.last_mut() else { return };
        let place = row.len().saturating_sub(1);
        row.extend(std::iter::repeat_n(String::new(), columns - 1));
        if rows > 1 {
            let words = row.get(place).filter(|words| words.len() <= CELL_BYTES).cloned().unwrap_or_default();
            if self.carried.len() <= place {
                self.carried.resize(place + 1, (0, String::new()));
            }
            if let Some(carried) = self.carried.get_mut(place) {
                *carried = (rows, words);
            }
        }
    }

    /// Cells from the rows above that reach into this one.
    fn carry(&mut self) {
        let Some(row) = self.rows.last_mut() else { return };
        while let Some((1.., words)) = self.carried.get(row.len()) {
            row.push(words.clone());
        }
    }

    fn close_row(&mut self) {
        self.carry();
        for (rows, _) in &mut self.carried {
            *rows = rows.saturating_sub(1);
        }
    }
}
