"""Documents of the API, one file or folder a domain."""
