"""Tests of aj/engine."""
