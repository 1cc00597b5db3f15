"""Attempts: from a run plan to evidence."""
