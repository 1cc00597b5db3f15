"""Commands for jobs and attempts."""
