"""Tests of aj/wire."""
