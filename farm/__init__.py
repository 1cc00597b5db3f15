"""The farm: queues benchmark jobs, judges evidence, and answers what is faster than what."""
