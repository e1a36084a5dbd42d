"""Nouns: frozen dataclasses and enums, without input, output or a clock."""
