"""Scans for changes that no version announced: of devices, of series, and of groups of series."""
