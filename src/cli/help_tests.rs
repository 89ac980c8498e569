//! What `--help` says, of every command.

use clap::{Command, CommandFactory as _};

use super::Cli;

/// Every command and what is below it, each with what is typed to get there.
fn all(command: Command, typed: &str) -> Vec<(String, Command)> {
    let typed = format!("{typed} {}", command.get_name()).trim_start().to_owned();
    let below: Vec<_> = command.get_subcommands().flat_map(|below| all(below.clone(), &typed)).collect();
    std::iter::once((typed, command)).chain(below).collect()
}

#[test]
fn every_command_and_argument_says_what_it_is_for() {
    Cli::command().debug_assert();
    let mut seen = 0;
    for (typed, command) in all(Cli::command(), "") {
        assert!(command.get_about().is_some(), "{typed} says nothing");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{typed}: {} says nothing", argument.get_id());
            seen += 1;
        }
    }
    assert!(seen > 50, "only {seen} arguments were found");
}

#[test]
fn help_fits_a_terminal_and_names_nothing_that_only_the_tests_know() {
    // R17, B76: names of promises and cases, which tests/README.md explains and no screen does.
    let named = regex::Regex::new(r"\b[RB][0-9]{1,2}\b").expect("a regular expression");
    for (typed, command) in all(Cli::command(), "") {
        let help = command.term_width(80).render_long_help().to_string();
        assert!(!named.is_match(&help), "{typed}: {help}");
        // What clap does not wrap: the line that is a command.
        let long = help.lines().find(|line| line.chars().count() > 80 && !line.starts_with("Usage:"));
        assert_eq!(long, None, "{typed}");
    }
}
