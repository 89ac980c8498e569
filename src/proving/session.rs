//! A plain session with a private cluster, as an application or an operator would have one.

use tokio_postgres::{Client, NoTls};

/// Connects. The session ends when the client is dropped.
pub async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
