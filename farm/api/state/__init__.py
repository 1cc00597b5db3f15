"""State of the application between requests."""
