"""The command `slidewise`."""
