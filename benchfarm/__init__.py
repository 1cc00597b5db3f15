"""The Python client of a benchfarm: `from benchfarm import Farm`."""
