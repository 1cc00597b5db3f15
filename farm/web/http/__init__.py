"""Responses of pages: rendering, headers, errors, sign-in and live changes."""
