"""The devices of this host: adb supervision, inventory, monitoring."""
