//! The `plimsoll` program.

fn main() -> std::process::ExitCode {
    plimsoll_cli::main()
}
