"""Attacks on the farm over HTTP: what `make security` runs, and its short form."""
