"""Standard output as every command uses it: at most 100 columns, however wide the terminal, and 100 in a pipe."""

from rich.console import Console

WIDTH = 100


def make_console() -> Console:
    """Return a console on standard output."""
    console = Console()
    return Console(width=min(console.width, WIDTH) if console.is_terminal else WIDTH)
