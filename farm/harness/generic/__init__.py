"""Harnesses that a definition describes."""
