"""The verbs: synchronous functions of a database connection that own their transaction."""
