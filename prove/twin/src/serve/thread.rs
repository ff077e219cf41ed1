//! A thread for each connection, which reads, works and answers.

use std::net::TcpListener;

use super::Server;
use crate::error::TwinError;
use crate::link::split;

pub(super) fn start(server: Server, listener: TcpListener) -> Result<(), TwinError> {
    server.spawn("accept", move |server| {
        for stream in listener.incoming() {
            let stream = stream.map_err(TwinError::system("accepting a connection"))?;
            server.spawn("connection", move |server| {
                let recorder = server.log.recorder();
                let mut handler = server.service.handler()?;
                let (mut sender, mut receiver) = split(stream, &server.log)?;
                while let Some(question) = receiver.receive(&recorder)? {
                    let answer = handler.handle(&question, &recorder)?;
                    sender.send(&answer, &recorder)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    })
}
