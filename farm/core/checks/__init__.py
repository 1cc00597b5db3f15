"""Health checks, reference runs and incidents."""
