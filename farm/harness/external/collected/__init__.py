"""Files of results that a service, an app or a person has collected."""
