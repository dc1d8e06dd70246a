"""The command line: tables in, models and predictions out. Nothing heavy is imported before a command needs it."""

from pauca.cli.command import main

__all__ = ["main"]
