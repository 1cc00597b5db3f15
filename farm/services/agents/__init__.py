"""What agents report and are told: sessions and exchanges."""
