"""The farm: queues benchmark jobs, assesses evidence, and compares variants."""

__version__ = "0.1.0"
