"""Answers as typed rows and as frames of pandas, polars and Arrow."""
