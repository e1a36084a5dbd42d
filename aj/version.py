"""The version of this release, and the range of wire protocols it speaks."""

VERSION = "0.1.0"
PROTOCOL_MIN = 1
PROTOCOL_MAX = 1
RELEASED = "2026-11-29"  # the date that the man pages carry, so that the same source gives the same pages
