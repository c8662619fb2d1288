//! Vectors: the rows of a matrix, for the chunks that a file of keys names.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use hedgerow::{Control, Snapshot, Space, StagedVector, Target, normalise};
use hedgerow_format::limits;

use crate::command::import::overlay::{Filling, Overlay, OverlayTally};
use crate::command::intake::{Origin, Rejections};
use crate::command::render::layout::counted;
use crate::failure::Failure;
use crate::read::lines::{LineError, Lines};
use crate::read::npy::Matrix;

/// A matrix and the keys of its rows, open.
#[derive(Debug)]
pub(super) struct VectorFiles<'a> {
    matrix: Matrix,
    ids_path: &'a Path,
    ids: Lines<BufReader<File>>,
}

impl<'a> VectorFiles<'a> {
    /// Opens both.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn open(matrix: &Path, ids: &'a Path) -> Result<Self, Failure> {
        let matrix = Matrix::open(matrix)?;
        Ok(VectorFiles { matrix, ids_path: ids, ids: Lines::open(ids).map_err(Failure::io("open", ids))? })
    }

    /// The space that the vectors belong to, among those that there are.
    ///
    /// # Errors
    /// [`Failure::Usage`] when the matrix does not fit it.
    pub fn space(&self, known: &[Space], name: &str, model: Option<&str>) -> Result<Space, Failure> {
        let dimensions = self.matrix.columns();
        if dimensions > limits::DIMENSIONS {
            let most = limits::DIMENSIONS;
            return Err(Failure::Usage(format!(
                "a vector has at most {most} components, and the matrix has {dimensions} columns"
            )));
        }
        let known = known.iter().find(|space| space.name == name);
        let model = model.unwrap_or_else(|| known.map_or(name, |space| &space.model));
        match known {
            Some(Space { model: expected, dimensions: columns, .. }) if expected != model || *columns != dimensions => {
                Err(Failure::Usage(format!(
                    "the space {name} holds vectors of {columns} components by {expected}, and the matrix has {dimensions} \
                     columns by {model}: name another --space"
                )))
            }
            _ => Ok(Space { name: name.to_owned(), model: model.to_owned(), dimensions, vectors: 0 }),
        }
    }
}

/// Imports the vectors of all rows that have a key.
///
/// # Errors
/// [`Failure`].
pub(super) fn import(
    overlay: &Overlay<'_>,
    files: VectorFiles<'_>,
    space: &Space,
    rejections: &mut Rejections,
) -> Result<OverlayTally, Failure> {
    let VectorFiles { matrix, ids_path, ids } = files;
    let file: Arc<str> = ids_path.to_string_lossy().into();
    let mut filling = Filling::default();
    let row_count = matrix.row_count();
    let mut rows = (1..).zip(matrix.rows());
    for line in ids {
        let (number, key) = match line {
            Ok(line) => (line.number, Ok(line.text)),
            Err(LineError::Io { source, .. }) => return Err(Failure::io("read", ids_path)(source)),
            Err(error @ (LineError::TooLong { line } | LineError::NotText { line, .. })) => {
                (line, Err(error.to_string()))
            }
        };
        let row = rows.find(|(row, _)| *row == number).map(|(_, row)| row).transpose()?;
        let read = match (key, row) {
            (Err(reason), _) => Err(reason),
            (Ok(_), None) => Err(format!("the matrix has only {}", counted(row_count, "row", "rows"))),
            (Ok(key), Some(components)) => match target(&overlay.store.snapshot(), &key)? {
                Ok(target) => usable(components).map(|components| (key, target, components)),
                Err(reason) => Err(reason),
            },
        };
        match read {
            Ok((key, target, components)) => {
                let (space, model) = (space.name.clone(), space.model.clone());
                filling.batch.set_vector(target, StagedVector { space, model, components });
                filling.added(1, &key);
            }
            Err(reason) => {
                let origin = Origin { file: file.clone(), line: Some(number) };
                overlay.reject(rejections, origin.rejected(reason));
            }
        }
        overlay.commit_if_full(&mut filling)?;
        overlay.progress.advance(number.min(row_count), row_count);
    }
    overlay.commit(&mut filling)?;
    Ok(filling.into_tally())
}

fn usable(mut components: Vec<f32>) -> Result<Vec<f32>, String> {
    normalise(&mut components).map_err(|fault| format!("the vector of this row cannot be used: {fault}"))?;
    Ok(components)
}

/// The chunk that a key names: the only one of a document, or `KEY#N`; a reason where it names none.
fn target(snapshot: &Snapshot, key: &str) -> Result<Result<Target, String>, Failure> {
    if let Some(document) = snapshot.find_document(key)? {
        let chunks = document.chunks().count();
        let target = Target { document: key.to_owned(), chunk: None };
        return Ok(match chunks {
            1 => Ok(target),
            0 => Err(format!("the document {key} has no chunk")),
            _ => Err(format!("the document {key} has {chunks} chunks; name one as {key}#N")),
        });
    }
    let unknown = || format!("there is no document or chunk {key}");
    let parsed = key.rsplit_once('#').and_then(|(document, ordinal)| Some((document, ordinal.parse().ok()?)));
    let Some((document, ordinal)) = parsed else { return Ok(Err(unknown())) };
    let chunks = snapshot.find_document(document)?.map_or(0, |document| document.chunks().count());
    if usize::try_from(ordinal).is_ok_and(|ordinal: usize| ordinal < chunks) {
        Ok(Ok(Target { document: document.to_owned(), chunk: Some(ordinal) }))
    } else {
        Ok(Err(unknown()))
    }
}
