"""What a report means: pure functions of what was read before."""
