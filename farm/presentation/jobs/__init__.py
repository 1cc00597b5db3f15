"""Jobs and attempts as text, for commands and pages."""
