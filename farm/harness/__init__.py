"""Harness adapters: pure functions from settings to a run plan, and from evidence to a reading."""
