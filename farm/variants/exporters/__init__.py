"""One module for each runtime that has an environment of its own: it writes its files, and runs them."""
