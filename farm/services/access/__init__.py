"""Who may call: tokens, roles, enrollment."""
