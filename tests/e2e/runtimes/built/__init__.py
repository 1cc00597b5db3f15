"""Networks built for runtimes that have an environment of their own."""
