"""The farm: queues benchmark jobs, judges evidence, and answers what is faster than what."""

__version__ = "0.1.0"
