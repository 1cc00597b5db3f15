"""History: points of series, and the sessions that they are to be computed of."""
