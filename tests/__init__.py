"""Tests, by package and room."""
