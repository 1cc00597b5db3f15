"""Documents of programs, definitions and storage."""
