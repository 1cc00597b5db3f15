"""Rows of artifacts, variants and programs."""
