"""Reads and writes of settlement."""
