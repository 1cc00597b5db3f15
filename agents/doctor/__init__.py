"""Looks a machine over: thin readers of facts, and pure checks of what they found."""
