"""Jobs and attempts: states, retries, deferral, fair share."""
