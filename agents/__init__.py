"""The agent: manages the phones attached to one host and runs plans on them."""
