"""Access of callers: tokens, roles, enrollment."""
