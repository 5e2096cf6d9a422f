//! The protocol of plug-ins as JSON Schema, made from the types themselves.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::domain::consult::Consultation;
use crate::domain::event::Record;
use crate::domain::protocol::{ConsultAnswer, HostMessage, PluginMessage, VERSION};

/// A part of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolPart {
    /// Each line, in both directions.
    All,
    /// A message to a plug-in.
    HostMessage,
    /// A message of a plug-in.
    PluginMessage,
    /// A record, as plug-ins and readers of `--json` see it.
    Record,
    /// A consultation.
    Consult,
    /// The answer to a consultation.
    Verdict,
}

/// Returns the JSON Schema of a part.
pub fn schema(part: ProtocolPart) -> Value {
    match part {
        ProtocolPart::All => {
            let lines = |generator: &mut SchemaGenerator| {
                json!({"anyOf": [
                    generator.subschema_for::<HostMessage<'static>>(),
                    generator.subschema_for::<PluginMessage>(),
                ]})
            };
            document("all", "a line to a plug-in, or of one", lines)
        }
        ProtocolPart::HostMessage => {
            only::<HostMessage<'static>>("host-message", "a line to a plug-in")
        }
        ProtocolPart::PluginMessage => {
            only::<PluginMessage>("plugin-message", "a line of a plug-in")
        }
        ProtocolPart::Record => only::<Record>("record", "a record"),
        ProtocolPart::Consult => only::<Consultation>("consult", "a question"),
        ProtocolPart::Verdict => only::<ConsultAnswer>("verdict", "an answer"),
    }
}

fn only<T: JsonSchema>(name: &str, title: &str) -> Value {
    document(name, title, |generator| {
        let reference = generator.subschema_for::<T>();
        json!({ "allOf": [reference] })
    })
}

fn document(name: &str, title: &str, of: impl FnOnce(&mut SchemaGenerator) -> Value) -> Value {
    let mut generator = SchemaGenerator::default();
    let mut document = of(&mut generator);
    document["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    document["$id"] = json!(format!("urn:raymond:plugin:v{VERSION}:{name}"));
    document["title"] = json!(format!("raymond's plug-in protocol, version {VERSION}: {title}"));
    document["$defs"] = Value::Object(generator.take_definitions(true));
    document
}
