"""Commands for logins and tokens."""
