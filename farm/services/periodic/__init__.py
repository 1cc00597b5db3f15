"""Periodic work and which farm process does it."""
