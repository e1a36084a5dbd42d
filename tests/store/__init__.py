"""Tests of aj/store."""
