//! A bank: transfers between accounts, and auditors who must always find the same sum.

use tyr::{ErrorKind, Result};
use tyr_chance::Chance;

use super::history::Object;
use super::stage::{Stage, key, values};

const ACCOUNTS: u64 = 8;
const SUM: u64 = ACCOUNTS * 1000;

/// What the auditors found: audits by snapshot, by read_many and by transaction that ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Audits {
    pub snapshots: u64,
    pub at_once: u64,
    pub transactions: u64,
    pub transfers: u64,
}

/// Runs the workload.
///
/// # Panics
/// When an auditor finds another sum.
pub fn play(stage: &Stage, threads: u64, operations: u64) -> Audits {
    for account in 0..ACCOUNTS as Object {
        let balance = (SUM / ACCOUNTS).to_le_bytes().to_vec();
        stage.keyspace(account).put(key(account), balance).unwrap();
    }
    let audits = std::sync::Mutex::new(Audits::default());
    stage.play(threads, |_, random| {
        let mut own = Audits::default();
        for _ in 0..operations {
            match random.below(10) {
                0..6 => own.transfers += u64::from(is_ended(transfer(stage, random))),
                6 => own.transactions += u64::from(is_ended(audit_by_transaction(stage))),
                7 => own.at_once += u64::from(is_ended(audit_at_once(stage))),
                _ => own.snapshots += u64::from(is_ended(audit_by_snapshot(stage))),
            }
        }
        let mut all = audits.lock().unwrap();
        all.snapshots += own.snapshots;
        all.at_once += own.at_once;
        all.transactions += own.transactions;
        all.transfers += own.transfers;
    });
    let mut audits = audits.into_inner().unwrap();
    // With nobody beside them, both must go through.
    audit_at_once(stage).unwrap();
    audit_by_transaction(stage).unwrap();
    audits.at_once += 1;
    audits.transactions += 1;
    audits
}

fn is_ended(result: Result<()>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::Conflict => false,
        Err(error) if error.kind() == ErrorKind::SnapshotTooOld => false,
        Err(error) => panic!("{error:?}"),
    }
}

fn transfer(stage: &Stage, random: &mut Chance) -> Result<()> {
    let from = random.below(ACCOUNTS) as Object;
    let to = (from + 1 + random.below(ACCOUNTS - 1) as Object) % ACCOUNTS as Object;
    let amount = random.below(200);
    stage.tyr().transact(|transaction| {
        let mut balances = [0; 2];
        for (balance, account) in balances.iter_mut().zip([from, to]) {
            *balance = values(&transaction.get(stage.keyspace(account), key(account))?)[0];
        }
        let amount = amount.min(balances[0]);
        let changed = [(from, balances[0] - amount), (to, balances[1] + amount)];
        for (account, balance) in changed {
            let data = balance.to_le_bytes().to_vec();
            transaction.put(stage.keyspace(account), key(account), data)?;
        }
        Ok(())
    })
}

fn audit_by_snapshot(stage: &Stage) -> Result<()> {
    let snapshot = stage.tyr().snapshot()?;
    for _ in 0..2 {
        let mut sum = 0;
        for account in 0..ACCOUNTS as Object {
            sum += values(&snapshot.get(stage.keyspace(account), key(account))?)[0];
        }
        assert_eq!(sum, SUM, "a snapshot at {} has another sum", snapshot.version());
    }
    Ok(())
}

fn audit_at_once(stage: &Stage) -> Result<()> {
    let accounts: Vec<Object> = (0..ACCOUNTS as Object).collect();
    let balances = stage.tyr().read_many(&stage.requests(&accounts))?;
    let sum: u64 = balances.iter().map(|bytes| values(bytes.as_ref().unwrap())[0]).sum();
    assert_eq!(sum, SUM, "read_many has another sum");
    Ok(())
}

fn audit_by_transaction(stage: &Stage) -> Result<()> {
    let mut transaction = stage.tyr().begin();
    let mut sum = 0;
    for account in 0..ACCOUNTS as Object {
        sum += values(&transaction.get(stage.keyspace(account), key(account))?)[0];
    }
    transaction.commit()?;
    assert_eq!(sum, SUM, "a transaction that committed has another sum");
    Ok(())
}
