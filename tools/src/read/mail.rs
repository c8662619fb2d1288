//! E-mail: the subject is the title, the headers are metadata, the body is the text; attachments are named, not read.

use mail_parser::{Address, MessageParser, MimeHeaders, PartType};
use serde_json::{Map, Value};

use crate::read::archive::broken;
use crate::read::composer::{Composer, one_line};
use crate::read::document::{Parsed, Refusal};
use crate::read::html;

const FORMAT: &str = "e-mail";

/// Addresses and attachments that are kept as metadata.
const KEPT_MAX: usize = 200;

/// Reads a message.
///
/// # Errors
/// [`Refusal`].
pub fn read(bytes: &[u8]) -> Result<Parsed, Refusal> {
    let message = MessageParser::new().parse(bytes).ok_or_else(|| broken(FORMAT, "it has no headers"))?;
    if message.from().is_none() && message.date().is_none() && message.subject().is_none() {
        return Err(broken(FORMAT, "it has none of the headers From, Date and Subject"));
    }
    let mut metadata = Map::new();
    for (name, list) in [("from", message.from()), ("to", message.to()), ("cc", message.cc())] {
        if let Some(addresses) = list.map(addresses).filter(|addresses| !addresses.is_empty()) {
            metadata.insert(name.to_owned(), addresses.join(", ").into());
        }
    }
    if let Some(date) = message.date() {
        metadata.insert("date".to_owned(), date.to_rfc3339().into());
    }
    if let Some(id) = message.message_id() {
        metadata.insert("message_id".to_owned(), id.into());
    }
    let names: Vec<Value> =
        message.attachments().filter_map(|part| part.attachment_name()).take(KEPT_MAX).map(Value::from).collect();
    if !names.is_empty() {
        metadata.insert("attachments".to_owned(), names.into());
    }
    let mut composer = Composer::default();
    for part in message.text_bodies() {
        match &part.body {
            // Lines of a message are short, and blank lines part its paragraphs.
            PartType::Text(body) => composer.block(&body.replace("\r\n", "\n"))?,
            PartType::Html(body) => composer = html::body(body, composer)?,
            _ => {}
        }
    }
    let title = message.subject().map(one_line).unwrap_or_default();
    let (text, parts) = composer.finish();
    Ok(Parsed { title, text, parts, metadata, media_type: "message/rfc822".to_owned() })
}

fn addresses(list: &Address<'_>) -> Vec<String> {
    let written = list.iter().take(KEPT_MAX).filter_map(|mailbox| match (mailbox.name(), mailbox.address()) {
        (Some(name), Some(address)) => Some(format!("{name} <{address}>")),
        (name, address) => Some(address.or(name)?.to_owned()),
    });
    written.collect()
}

#[cfg(test)]
mod tests {
    use crate::read::mail::read;

    #[test]
    fn headers_are_metadata_and_the_subject_is_the_title() {
        let mail = "From: Ann =?utf-8?q?Zo=C3=AB?= <ann@example.org>\r\nTo: b@example.org, c@example.org\r\nSubject: =?utf-8?b?R3LDvMOfZQ==?=\r\n\
             Date: Fri, 16 Dec 2022 17:04:16 -0500\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\r\nCaf\u{e9}\r\n\r\nBye\r\n";
        let bytes: Vec<u8> = mail.chars().map(|letter| letter as u8).collect();
        let parsed = read(&bytes).unwrap();
        assert_eq!((parsed.title.as_str(), parsed.text.as_str()), ("Grüße", "Café\n\nBye"));
        assert_eq!(parsed.metadata["from"], "Ann Zoë <ann@example.org>");
        assert_eq!(parsed.metadata["to"], "b@example.org, c@example.org");
        assert_eq!(parsed.metadata["date"], "2022-12-16T17:04:16-05:00");
    }

    #[test]
    fn a_message_in_html_is_read_and_attachments_are_named() {
        let mail = "Subject: Plan\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
             Content-Type: text/html\n\n<p>One</p><script>x</script><p>Two</p>\n--b\n\
             Content-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment; filename=a.pdf\n\
             Content-Transfer-Encoding: base64\n\nJVBERg==\n--b--\n";
        let parsed = read(mail.as_bytes()).unwrap();
        assert_eq!(parsed.text, "One\n\nTwo");
        assert_eq!(parsed.metadata["attachments"], serde_json::json!(["a.pdf"]));
    }

    #[test]
    fn text_without_headers_is_no_message() {
        assert!(read(b"Just words.\n").unwrap_err().to_string().contains("headers"));
    }
}
