"""The link to the farm: enrollment, poll loop, lease, reconciliation."""
