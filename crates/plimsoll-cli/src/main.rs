//! The `plimsoll` program.

/// Gives memory back to the system after a burst, such as loading a payload, which the system's
/// own allocator does not.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    plimsoll_cli::main()
}
