"""Processes of a virtual device."""
