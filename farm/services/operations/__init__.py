"""Events and alarms."""
