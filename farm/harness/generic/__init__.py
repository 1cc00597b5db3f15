"""Harnesses described by a definition."""
