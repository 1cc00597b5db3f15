"""Geometry of charts: pure functions from numbers to places in an SVG; templates draw them."""
