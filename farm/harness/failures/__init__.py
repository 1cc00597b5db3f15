"""Reasons why a run gave no numbers: patterns, kinds and their blame."""
