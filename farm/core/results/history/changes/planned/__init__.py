"""Planned tests: what a new version changed, in ratios and in absolute times."""
