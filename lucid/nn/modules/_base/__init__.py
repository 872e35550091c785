"""Shared by the layers: hooks, state dicts, layers as rows of a table, sizes per dimension."""
