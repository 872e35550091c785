import importlib.util
import sys
import types
import unittest


def prepare_databases():
    """PyTorch's databases import expecttest for a base class that no database uses; a machine with a GPU need not have it."""
    if "expecttest" not in sys.modules and not importlib.util.find_spec("expecttest"):
        sys.modules["expecttest"] = types.ModuleType("expecttest")
        sys.modules["expecttest"].TestCase = unittest.TestCase
