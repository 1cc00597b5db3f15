"""State of a virtual device: battery, boot, faults, files."""
