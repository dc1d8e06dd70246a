"""The command line: tables in, models and predictions out. Libraries are imported when a command needs them."""

from pauca.cli.command import main

__all__ = ["main"]
