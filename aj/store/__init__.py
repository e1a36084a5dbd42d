"""The door to the disk: everything under the state directory is read and written here."""
