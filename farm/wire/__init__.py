"""Pydantic at the edge: what travels over HTTP."""
