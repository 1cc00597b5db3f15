"""Environments in which files for other runtimes are built, and what is installed in them."""
