"""The Python client, its page and its notebooks against a farm with virtual phones."""
