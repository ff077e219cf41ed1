//! The answer on the output: row by row where this process computes it, whole or not at all where a cluster does.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek as _, Write};
use std::path::Path;

use futures::StreamExt as _;
use luc_fleet_sql::output::{Format, Output};
use luc_fleet_sql::{Session, SqlError};

/// How often a query is asked whose executor is lost meanwhile.
const MOST_TIMES: usize = 5;
/// An answer that is not whole yet, in a directory of our own.
const KEPT: &str = "answer";

/// Asks, and writes the answer.
pub(crate) async fn write(session: &Session, query: &str, format: Format) -> Result<(), SqlError> {
    let Some(directory) = session.keeps_in() else {
        rows(session, query, format, io::stdout()).await?.flush()?;
        return Ok(());
    };
    let mut whole = collected(session, query, format, &directory.join(KEPT)).await?;
    whole.rewind()?;
    let mut out = io::stdout().lock();
    io::copy(&mut whole, &mut out)?;
    Ok(out.flush()?)
}

/// The file of a whole answer. It has no name any more.
async fn collected(
    session: &Session,
    query: &str,
    format: Format,
    path: &Path,
) -> Result<File, SqlError> {
    let mut times = 1;
    loop {
        let file = File::create_new(path)
            .map_err(|reason| SqlError::Directory { path: path.to_owned(), reason })?;
        let answer = rows(session, query, format, file).await;
        fs::remove_file(path)?;
        match answer {
            Err(SqlError::Lost { .. }) if times < MOST_TIMES => {
                times += 1;
                eprintln!("luc-fleet-sql: an executor is lost; the query is asked anew");
            }
            answer => return answer,
        }
    }
}

/// Asks, and writes the rows as they come.
async fn rows<W: Write>(
    session: &Session,
    query: &str,
    format: Format,
    to: W,
) -> Result<W, SqlError> {
    let mut stream = session.ask(query).await?;
    let failed = |error| session.failed(error);
    // The first rows are there before anything is written: most errors come instead of them.
    let mut next = stream.next().await.transpose().map_err(failed)?;
    let mut output = Output::new(BufWriter::new(to), &stream.schema(), format)?;
    while let Some(rows) = next {
        output.add(&rows)?;
        next = stream.next().await.transpose().map_err(failed)?;
    }
    let written = output.finish()?.into_inner();
    Ok(written.map_err(io::IntoInnerError::into_error)?)
}
