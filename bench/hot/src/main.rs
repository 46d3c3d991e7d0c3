//! What a breaker costs per call, beside six others, in one run.
//!
//! Every contestant takes its turn in every round, so that a busy minute hits all alike; the tables show medians.

mod measure;
mod ours;
mod peers;

use measure::{Contestant, Table, measure};

/// Rounds; each gives every contestant some milliseconds.
const ROUNDS: usize = 41;

fn main() {
    let mut contestants = ours::contestants();
    let own = contestants.len();
    contestants.extend(peers::contestants());
    let table = measure(&contestants, ROUNDS);
    print_table(&contestants, &table);
    print_ratios(&contestants, &table, own);
    println!();
    ours::print_flatness();
}

fn print_table(contestants: &[Contestant], table: &Table) {
    println!("| ns | success | on 2 threads | refusal | on 2 threads | failure | on 2 threads |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for (contestant, row) in contestants.iter().zip(table) {
        let cells: Vec<String> = row.iter().map(|nanos| format!("{nanos:.1}")).collect();
        println!("| {} | {} |", contestant.name, cells.join(" | "));
    }
    println!();
}

/// Fuseline's borrowed and owned permits against the fastest peer of each column, with what they should not exceed.
fn print_ratios(contestants: &[Contestant], table: &Table, own: usize) {
    println!("| against the fastest peer | ratio | aim | peer |");
    println!("|---|---:|---:|---|");
    for (what, row, column, aim) in [
        ("success", 0, 0, 0.6),
        ("success, 2 threads", 0, 1, 0.08),
        ("refusal", 0, 2, 0.25),
        ("refusal, 2 threads", 0, 3, 0.25),
        ("failure", 0, 4, 2.0),
        ("failure, 2 threads", 0, 5, 0.7),
        ("success, owned permit", 1, 0, 1.0),
    ] {
        let peers = table.iter().zip(contestants).skip(own);
        let fastest = peers.min_by(|a, b| a.0[column].total_cmp(&b.0[column]));
        if let Some((theirs, peer)) = fastest {
            let ratio = table[row][column] / theirs[column];
            println!("| {what} | {ratio:.2} | {aim} | {} |", peer.name);
        }
    }
    println!(
        "| success, 2 threads against 1 | {:.2} | 1.3 | (itself) |",
        table[0][1] / table[0][0]
    );
}
