"""Rows of what is made of reports."""
