"""Tuning of what exporters compile."""
