"""Rows of health checks, reference runs and incidents."""
