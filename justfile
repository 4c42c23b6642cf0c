# The verbs of this repository. Each is one line of plain cargo; CONTRIBUTING.md has the table.

# List the verbs.
default:
    @just --list --unsorted

# Does it compile?
check:
    cargo check --workspace --all-targets

# Run tests; `just test -p tyr-store log::` runs some.
test *ARGS:
    cargo test {{ if ARGS == "" { "--workspace" } else { ARGS } }}

# All tests, and each goes through all that it leaves to chance: continuous integration has time for a quarter. `just thorough -p tyr --test kill` for some.
thorough *ARGS:
    TYR_THOROUGH=1 cargo test {{ if ARGS == "" { "--workspace" } else { ARGS } }}

# The rules of STYLE.md that no compiler knows.
tidy:
    cargo xtask tidy

# Everything that must hold before a commit; never writes to the tree.
verify:
    cargo xtask test

# Mend what a machine can mend; writes to the tree.
fix:
    cargo fmt --all
    cargo clippy --fix --allow-dirty --allow-staged --workspace --all-targets

# The monitoring store under load, live, for 20 seconds.
demo *ARGS:
    cargo run --release -- demo {{ ARGS }}

# One seed of the simulator, or a hundred: a whole cluster under faults.
sim SEED="":
    cargo run --profile sim -p tyr-sim -- {{ if SEED == "" { "sweep --seeds 0..100" } else { "run --seed " + SEED } }}

# The simulator for so many minutes, with seeds that nobody has run before.
sim-for MINUTES:
    cargo run --profile sim -p tyr-sim -- sweep --minutes {{ MINUTES }}

# So many seeds that nobody has run before, on all cores: for the night.
sim-nightly RUNS="10000":
    cargo run --profile sim -p tyr-sim -- sweep --runs {{ RUNS }} --threads $(nproc)

# Real nodes under faults, built as CI builds them: what CI runs of it, or `just trial run --seed 7 --minutes 2`.
trial *ARGS="suite":
    cargo build --profile test -p tyr-cli -p tyr-trial
    "${CARGO_TARGET_DIR:-target}/debug/tyr-trial" {{ ARGS }}

# An hour on five nodes with a seed that nobody has run before: every fault, cuts of 90 s among them, keyspaces of 1, 2 and 3 replicas.
trial-long MINUTES="60":
    cargo build --profile sim -p tyr-cli -p tyr-trial
    "${CARGO_TARGET_DIR:-target}/sim/tyr-trial" run --seed $(date +%s) --minutes {{ MINUTES }} --nodes 5 --faults all --replications 1,2,3 --pace-ms 40

# Half an hour of listings while one or two of five nodes are killed or stand still, caches and logs as small as they may be in use.
trial-listings MINUTES="30":
    cargo build --profile sim -p tyr-cli -p tyr-trial
    "${CARGO_TARGET_DIR:-target}/sim/tyr-trial" run --seed $(date +%s) --minutes {{ MINUTES }} --nodes 5 --faults kill,kill-two,pause --workloads listings --clients 6 --cache-mib 64 --fold-log-mib 8

# Half an hour on five nodes with clients in C, Python, Java and Rust, in one history.
trial-workers MINUTES="30":
    cargo build --profile test -p tyr-cli -p tyr-trial -p tyr-c -p tyr-python -p tyr-java
    "${CARGO_TARGET_DIR:-target}/debug/tyr-trial" run --seed $(date +%s) --minutes {{ MINUTES }} --nodes 5 --workers c,python,java,rust --faults kill,kill-head,kill-tail,pause,partition,isolate,one-way,bridge,clock

# Clients in C, Python and Java are killed in the middle of commits, 200 times each in a folder and in a cluster.
ledger *ARGS:
    cargo build --profile test -p tyr-cli -p tyr-trial -p tyr-c -p tyr-python -p tyr-java
    "${CARGO_TARGET_DIR:-target}/debug/tyr-trial" ledger {{ ARGS }}

# Two programs on xarray and one on duckdb share a cluster whose nodes are killed: no region is torn. `just arrays 1 --without transactions` shows some that are.
arrays *ARGS:
    cargo xtask arrays {{ ARGS }}

# Holders of locks that stand still past their lease and then write: refused, 1,000 of 1,000; without the compare the check says so.
fencing: (trial "single" "fencing,fencing-broken")

# Who may only call methods tries everything else: refused, and auditors hear of each.
call-right:
    cargo test -p tyr-object --test objects who_may_only_call

# 10,000 classes that mean no good: none does anything, others hardly notice, nodes stay within their memory; `just hostile --times 800` for less.
hostile *ARGS: (trial "single" "hostile" ARGS)

# Classes replaced 1,000 times under calls and 120 watchers, with times, and 1,000 times while nodes are killed; `just classes --times 100` for less.
classes *ARGS: (trial "single" "classes" ARGS)

# Eight consumers of a log, processes that are killed: at least once, exactly once, at most once.
consumers: (trial "single" "consumers")

# Whoever has the sequencer of a log is killed, 100 programs and 20 nodes: no position twice, holes are filled; `just sequencer --times 20` for less.
sequencer *ARGS: (trial "single" "sequencer" ARGS)

# Half an hour of logs of both designs on five nodes under every fault, then `just sequencer`: each entry once, in one order, say two checkers.
trial-logs MINUTES="30" *ARGS: (trial "run --seed $(date +%s) --nodes 5 --faults all --workloads shared-logs,zlogs --minutes" MINUTES ARGS) sequencer

# Programs with files open are killed 1,000 times and nodes 500 times while others look at every name: an hour; `just fs-kills --times 40` for less.
fs-kills *ARGS: (trial "single" "files" ARGS)

# Ten thousand tasks of a hundred programs make two million files in one directory that is listed all the time: none fails, each is there once; `just fs-crowd --times 10` for less.
fs-crowd *ARGS:
    cargo build --profile sim -p tyr-cli -p tyr-trial
    "${CARGO_TARGET_DIR:-target}/sim/tyr-trial" single files-crowd {{ ARGS }}

# A node joins and another is drained while programs change a file system: no change fails, none takes 5 s.
fs-moves: (trial "single" "files-moved")

# How long a seat takes from node to node, and requests to it meanwhile.
handover: (trial "single" "handover")

# From the program of an older commit to this one, node by node, under load.
trial-upgrade COMMIT="HEAD~1":
    .ci/upgrade {{ COMMIT }}

# The commands of README.md and the guides, as they are printed, in a clean clone; `just guides --all` also those that take minutes.
guides *ARGS:
    .ci/guides {{ ARGS }}

# Any bytes into the wire and record formats: message, stream, record or map, for so many minutes.
fuzz TARGET MINUTES="10":
    cargo +nightly fuzz run --fuzz-dir fuzz {{ TARGET }} -- -max_total_time=$(({{ MINUTES }} * 60)) -max_len=4096 -malloc_limit_mb=64

# The header of libtyr, anew from the sources.
header:
    cargo xtask header

# The wheel for Python in an empty environment, with all its tests; minutes.
python:
    cargo xtask python

# The jar for Java with all its tests, also with the Java of other JDKs' folders.
java *JDKS:
    cargo xtask java {{ JDKS }}

# The jar for Java, with an optimized library, and its pom into a folder.
install-java FOLDER:
    cargo xtask install-java {{ FOLDER }}

# libtyr, its headers and its files for pkg-config and CMake into a folder.
install-c PREFIX:
    cargo xtask install-c {{ PREFIX }}

# The programs in C and C++ under valgrind; minutes.
c-valgrind:
    cargo xtask c-valgrind

# The programs in C and C++ under the sanitizer for threads, with clang, and from a prefix; minutes.
c-thorough:
    cargo xtask c-thorough

# Ten million calls of each language at the same memory, and a million under valgrind and sanitizers; most of an hour.
steady *ARGS:
    cargo xtask steady {{ ARGS }}

# What calls cost in CPU time from each language beside Rust, by optimized libraries; minutes.
call-costs *ARGS:
    cargo xtask call-costs {{ ARGS }}

# The figures of docs/performance.md; `just bench --quick` for a look.
bench *ARGS:
    cargo run --release -- bench {{ ARGS }}

# What a cluster of three nodes on this machine costs; `just bench-cluster --quick` for a look.
bench-cluster *ARGS:
    cargo run --release -- bench --cluster {{ ARGS }}

# Other people's tests on a mounted file system (root, /dev/fuse): pjdfstest, fsx, fio, stress-ng, dbench, git, sqlite, tar; `--place cluster`, or `two` mounts of one.
fs-suites *ARGS:
    cargo xtask fs-suites {{ ARGS }}

# Files by the million, a moment of 100,000 files, a hundred checks under load; minutes.
fs-large *NAME:
    TYR_THOROUGH=1 cargo test --profile sim -p tyr-fs --test files {{ NAME }} -- --nocapture --test-threads 1

# A million changes at one mount of a file system, and 100,000 at one of a cluster, each looked for by the next call at another (root, /dev/fuse): none sees what was before.
fs-stale:
    TYR_THOROUGH=1 cargo test --profile sim -p tyr-fs --features mount --test mount what_a_call_did -- --nocapture --test-threads 1

# What calls cost on a mounted file system, beside others (root, /dev/fuse): `just fs-bench --beside NAME=DIR`.
fs-bench *ARGS:
    cargo xtask fs-bench {{ ARGS }}

# The libraries' reference, as HTML, with what is private.
docs:
    cargo doc --workspace --no-deps --lib --document-private-items --open
