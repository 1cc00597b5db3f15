"""Rows of events, alarms, tokens and database epochs."""
