"""The adb server we own, and a small asyncio client of its protocol."""
