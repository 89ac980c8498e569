//! `outboxd completions`

use clap::{Args, Command};
use clap_complete::Shell;

use super::{Exit, print};

/// Of which shell.
#[derive(Args)]
pub struct Options {
    /// Whose completions
    #[arg(value_name = "SHELL", value_parser = clap::value_parser!(Shell))]
    shell: Shell,
}

/// Prints the script of that shell.
pub fn run(options: &Options, command: Command) -> Exit {
    print::out(&script(options.shell, command))
}

fn script(shell: Shell, mut command: Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "outboxd", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, ValueEnum as _};

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_shell_is_told_every_command() {
        for shell in Shell::value_variants() {
            let script = script(*shell, Cli::command());
            for command in Cli::command().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }
}
