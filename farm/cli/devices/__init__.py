"""Commands for devices."""
