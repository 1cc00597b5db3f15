"""Events, alarms, roles, retention, diagnostics."""
