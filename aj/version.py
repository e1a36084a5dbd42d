"""The version of this release, and the range of wire protocols it speaks."""

VERSION = "0.1.0"
PROTOCOL_MIN = 1
PROTOCOL_MAX = 1
