"""What the files of layers share: hooks, state dicts, layers as rows of a table, sizes per dimension."""
