"""Shared parts of all commands: output, tables, errors, exit codes, settings."""
