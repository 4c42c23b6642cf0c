//! The page that newcomers read first: what it tells them to type works.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::shell::{Shell, describe};

const PAGE: &str = include_str!("../../../../docs/start.md");

/// The commands of the page's shell examples, but those that build, the one that names the store,
/// and those of the cluster, which are for two terminals. All of them: `.ci/guides`.
fn examples() -> String {
    let mut script = String::from("set -e\n");
    let (before, cluster) = PAGE.split_once("\n## A cluster\n").expect("there is such a section");
    let (_, after) = cluster.split_once("\n## ").expect("it is not the last one");
    let blocks = before.split("```sh\n").skip(1).chain(after.split("```sh\n").skip(1));
    for block in blocks {
        let (block, _) = block.split_once("```").expect("a block ends");
        if !block.contains("cargo ") && !block.contains("export TYR_DATA") {
            script.push_str(block);
        }
    }
    script
}

#[test]
fn the_examples_of_the_start_page_work_as_printed() {
    let shell = Shell::empty();
    let tools = Path::new(env!("CARGO_BIN_EXE_tyr")).parent().expect("it is in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    std::fs::create_dir(shell.path("docs")).unwrap();
    std::fs::write(shell.path("docs/a page"), "for tar").unwrap();
    let output = Command::new("sh")
        .args(["-c", &examples()])
        .env("PATH", format!("{}:{path}", tools.display()))
        .env("TYR_DATA", shell.data())
        .current_dir(shell.data().parent().unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", describe(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["hello, world", "\n13\n", "\n1\n2\n", "docs/a page", "0 errors"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let greeting = shell.ok(["get", "notes", "greeting"]);
    assert_eq!(String::from_utf8_lossy(&greeting), "hello, there\nagain");
    assert_eq!(shell.ok(["get", "notes", "published"]), b"to be published");
}
