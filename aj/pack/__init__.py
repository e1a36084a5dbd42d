"""A code tree to a content-addressed archive."""
