"""Waits for what a server does in the background."""

import time

# Seconds that a wait lasts at most.
PATIENCE = 300


def until(what, look):
    """Looks until something is there."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise SystemExit(f"{what} does not come")
