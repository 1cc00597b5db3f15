"""adb services of a virtual device."""
