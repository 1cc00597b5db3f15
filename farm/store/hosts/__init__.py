"""Rows of hosts and join tokens."""
