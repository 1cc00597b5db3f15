"""Commands for events and alarms."""
