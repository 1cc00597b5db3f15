"""Rows for other tools, and results of others."""
