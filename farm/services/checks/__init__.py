"""Health checks, reference runs and incidents of devices."""
