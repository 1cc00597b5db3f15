"""Content-addressed files of the farm."""
