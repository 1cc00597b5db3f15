"""adb's transport protocol, device side."""
