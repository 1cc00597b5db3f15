"""Reports on their way to the farm."""
