//! A server with the interface of a model, in a thread, that answers as a test tells it to.

use crate::models::interface;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub authorization: Option<String>,
    pub body: Value,
}

impl Seen {
    /// What the user said last.
    pub fn question(&self) -> &str {
        self.body["messages"].as_array().and_then(|list| list.last()?["content"].as_str()).unwrap_or_default()
    }
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Answers well.
    Json(Value),
    /// Answers with a status, a header and a body.
    Status(u16, &'static str, String),
    /// Sends this body and nothing else of note.
    Body(String),
    /// Promises more bytes than it sends.
    Half(Value),
    /// Waits before it answers well.
    Late(Duration, Value),
    /// Sends a byte from time to time, without an end.
    Drip,
    /// Sends bytes as fast as they are read, without an end.
    Endless,
}

/// A chat model's answer with this text.
pub fn said(text: impl AsRef<str>) -> Value {
    json!({
        "choices": [{"message": {"role": "assistant", "content": text.as_ref()}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10},
    })
}

type Answer = dyn Fn(&Seen, usize) -> Reply + Send + Sync;

/// The server; it ends with the value.
pub struct Stub {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    ends: Arc<AtomicBool>,
}

impl Stub {
    /// A server that does what `answer` says to each request, which is counted from 0.
    pub fn new(answer: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let (seen, ends) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let stub = Stub { port, seen: Arc::clone(&seen), ends: Arc::clone(&ends) };
        let answer: Arc<Answer> = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if ends.load(Ordering::SeqCst) {
                    return;
                }
                let (seen, ends, answer) = (Arc::clone(&seen), Arc::clone(&ends), Arc::clone(&answer));
                // A client that goes away is no failure of the server.
                thread::spawn(move || drop(serve(&stream, &seen, &ends, &*answer)));
            }
        });
        stub
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All requests until now.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no one panics").clone()
    }
}

/// Every request of every test must keep to the interface, whatever it is answered.
impl Drop for Stub {
    fn drop(&mut self) {
        if !thread::panicking() {
            for Seen { path, body, .. } in self.seen() {
                assert_eq!(interface::faults(&path, &body), Vec::<String>::new(), "{body}");
            }
        }
        self.ends.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

fn serve(stream: &TcpStream, seen: &Mutex<Vec<Seen>>, ends: &AtomicBool, answer: &Answer) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut length, mut authorization) = (0, None);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "authorization" => authorization = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request = Seen { path, authorization, body: serde_json::from_slice(&body).unwrap_or_default() };
    let number = {
        let mut seen = seen.lock().expect("no one panics");
        seen.push(request.clone());
        seen.len() - 1
    };
    reply(stream, answer(&request, number), ends)?;
    stream.shutdown(Shutdown::Both)
}

fn reply(mut stream: &TcpStream, reply: Reply, ends: &AtomicBool) -> std::io::Result<()> {
    let head = |status: u16, header: &str, length: usize| {
        format!("HTTP/1.1 {status} Any\r\n{header}content-length: {length}\r\nconnection: close\r\n\r\n")
    };
    match reply {
        Reply::Json(value) => send(stream, &head(200, "", value.to_string().len()), &value.to_string()),
        Reply::Body(body) => send(stream, &head(200, "", body.len()), &body),
        Reply::Status(status, header, body) => send(stream, &head(status, header, body.len()), &body),
        Reply::Half(value) => {
            let text = value.to_string();
            send(stream, &head(200, "", text.len()), &text[..text.len() / 2])
        }
        Reply::Late(wait, value) => {
            thread::sleep(wait);
            send(stream, &head(200, "", value.to_string().len()), &value.to_string())
        }
        Reply::Drip => {
            stream.write_all(head(200, "", 1 << 20).as_bytes())?;
            while !ends.load(Ordering::SeqCst) {
                stream.write_all(b" ")?;
                thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        }
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 Any\r\nconnection: close\r\n\r\n")?;
            while !ends.load(Ordering::SeqCst) {
                stream.write_all(&[b' '; 4096])?;
            }
            Ok(())
        }
    }
}

fn send(mut stream: &TcpStream, head: &str, body: &str) -> std::io::Result<()> {
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}
