"""Rows of evidence, measurements and placements."""
