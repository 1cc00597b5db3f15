"""Text as adb and the shell deliver it."""
