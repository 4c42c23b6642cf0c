//! Who speaks another version.

use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tyr_control::frame;
use tyr_control::hello::{HELLO_LEN_MAX, MAGIC, VERSION, Welcome};
use tyr_control::{ClientOptions, MetadataClient, TcpConnect};

use super::{Answering, Responder};

#[tokio::test]
async fn another_version_is_told_so() {
    let (mut near, far) = tokio::io::duplex(1 << 16);
    let client = MetadataClient::new(ClientOptions::at(&["nowhere:1"]), Arc::new(TcpConnect));
    let answering = Answering::new(None, Some(client.unwrap()));
    let server = Responder::new(answering, Arc::new(|_| panic!("nobody is asked for")));
    let served = tokio::spawn(async move { server.accept(far).await });
    near.write_all(MAGIC).await.unwrap();
    near.write_all(&(VERSION + 1).to_le_bytes()).await.unwrap();
    let welcome: Welcome = frame::receive(&mut near, HELLO_LEN_MAX).await.unwrap();
    let error = tyr_types::Error::from(welcome.refusal.unwrap());
    let expected = format!("version {} of the control plane is not spoken here", VERSION + 1);
    assert!(error.to_string().contains(&expected), "{error}");
    served.await.unwrap().unwrap();
}
