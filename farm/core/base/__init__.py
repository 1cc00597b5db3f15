"""Ids, units, addresses and text that every domain uses."""
