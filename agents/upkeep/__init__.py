"""Recovery, charging and maintenance of devices."""
