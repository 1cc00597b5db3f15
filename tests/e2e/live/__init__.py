"""Phones that a client drives live."""
