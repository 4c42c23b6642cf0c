//! A bank: transfers between accounts, and audits that must always find the same sum.

use tyr_types::{Error, Result};

use super::Stage;
use crate::client::{put, range, values};
use crate::history::{Moment, Scribe, Step};
use crate::random::Random;

/// How many accounts there are.
pub const ACCOUNTS: u64 = 8;
/// What they hold together.
pub const SUM: u64 = ACCOUNTS * 1000;

/// Opens the accounts.
pub(super) fn prepare(stage: &Stage) -> Result<()> {
    let mut deal = stage.caller.begin();
    for account in keys() {
        deal.add(&account, put(SUM / ACCOUNTS));
    }
    deal.commit()
}

/// One operation of a client.
pub(super) fn act(stage: &Stage, scribe: &mut Scribe, random: &mut Random) -> Result<()> {
    match random.below(10) {
        0..6 => transfer(stage, scribe, random),
        6 => audit_by_transaction(stage, scribe),
        7 => audit_at_once(stage, scribe, "audit-many"),
        _ => audit_by_snapshot(stage, scribe),
    }
}

/// Reads every account.
pub(super) fn finish(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    audit_at_once(stage, scribe, "final")
}

pub(super) fn keys() -> Vec<String> {
    (0..ACCOUNTS).map(|account| format!("account-{account}")).collect()
}

fn asked(keys: &[String]) -> Vec<Step> {
    keys.iter().map(|key| Step::Read { key: key.clone(), seen: None }).collect()
}

/// Takes what was read as a step's answer.
fn answer(step: &mut Step, bytes: Option<tyr_types::Bytes>) -> Result<u64> {
    let found = values(&bytes.unwrap_or_default())?;
    let balance = found.first().copied();
    let balance = balance.ok_or_else(|| Error::corrupt(format!("an account is gone: {step:?}")))?;
    if let Step::Read { seen, .. } = step {
        *seen = Some(balance);
    }
    Ok(balance)
}

fn transfer(stage: &Stage, scribe: &mut Scribe, random: &mut Random) -> Result<()> {
    let mut accounts = keys();
    random.shuffle(&mut accounts);
    let (two, amount) = (&accounts[..2], random.below(200));
    scribe.record("transfer", Moment::Strict, asked(two), |steps| {
        let mut deal = stage.caller.begin();
        let mut balances = Vec::new();
        for (step, key) in steps.iter_mut().zip(two) {
            balances.push(answer(step, deal.read(key, range(0, 1))?)?);
        }
        let amount = amount.min(balances[0]);
        let changed = [balances[0] - amount, balances[1] + amount];
        for (key, value) in two.iter().zip(changed) {
            deal.add(key, put(value));
            steps.push(Step::Write { key: key.clone(), value });
        }
        deal.commit()
    })
}

fn audit_by_transaction(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    let accounts = keys();
    scribe.record("audit-transaction", Moment::Strict, asked(&accounts), |steps| {
        let mut deal = stage.caller.begin();
        for (step, key) in steps.iter_mut().zip(&accounts) {
            answer(step, deal.read(key, range(0, 1))?)?;
        }
        deal.commit()
    })
}

fn audit_at_once(stage: &Stage, scribe: &mut Scribe, operation: &str) -> Result<()> {
    let accounts = keys();
    scribe.record(operation, Moment::Fresh, asked(&accounts), |steps| {
        let found = stage.caller.read_many(&accounts, range(0, 1))?;
        steps.iter_mut().zip(found).try_for_each(|(step, bytes)| answer(step, bytes).map(drop))
    })
}

fn audit_by_snapshot(stage: &Stage, scribe: &mut Scribe) -> Result<()> {
    let accounts = keys();
    scribe.record("audit-snapshot", Moment::Snapshot, asked(&accounts), |steps| {
        let found = stage.caller.read_snapshot(&accounts, range(0, 1))?;
        steps.iter_mut().zip(found).try_for_each(|(step, bytes)| answer(step, bytes).map(drop))
    })
}
