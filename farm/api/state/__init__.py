"""What the application keeps between requests."""
