//! Clients that send notices to who watches (K6).

use tyr_protocol::session::{Answer, Call, NotifyCall};
use tyr_types::{BlobName, Bytes};

use super::Runner;
use crate::checker::Noticed;

/// A notice that a client sends, or has sent.
pub(super) struct Notifying {
    blob: BlobName,
    timeout_us: u64,
    /// Its place in the history, once it is sent.
    noticed: Option<usize>,
}

impl Runner {
    /// A client sends a notice.
    pub(super) fn begin_notifying(&mut self, client: u16, blob: BlobName, timeout_us: u64) {
        let notifying = Notifying { blob, timeout_us, noticed: None };
        self.clients[usize::from(client)].notifying = Some(notifying);
    }

    /// The call of a client that has not sent its notice yet.
    pub(super) fn go_on_notifying(&mut self, number: u16, now_us: u64) -> Option<Call> {
        let notifying = self.clients[usize::from(number)].notifying.as_mut()?;
        if notifying.noticed.is_some() {
            return None;
        }
        let place = self.history.notices.len();
        notifying.noticed = Some(place);
        let (blob, timeout_us) = (notifying.blob.clone(), notifying.timeout_us);
        let payload = Bytes::from((place as u64).to_le_bytes().to_vec());
        self.history.notices.push(Noticed {
            client: number,
            blob: blob.clone(),
            payload: payload.clone(),
            start_us: now_us,
            end_us: None,
            notified: None,
        });
        Some(Call::Notify(NotifyCall { blob, payload, timeout_us }))
    }

    /// The answer to a notice of a client; whether it is that.
    pub(super) fn notified(&mut self, number: u16, answer: &Answer, now_us: u64) -> bool {
        let client = &mut self.clients[usize::from(number)];
        let Some(notifying) = client.notifying.take() else { return false };
        let (low, high) = self.pause_us;
        client.next_us = now_us + client.random.between(low, high);
        let place = notifying.noticed.expect("what is answered was sent");
        let noticed = &mut self.history.notices[place];
        noticed.end_us = Some(now_us);
        if let Answer::Notified(notified) = answer {
            noticed.notified = Some(notified.clone());
        }
        true
    }
}
