"""The tables of declared modules. A line without indentation is a module and why its absent names are absent. Its names follow:

class A B(x,y)     classes for isinstance, annotations and subclasses; making one raises; x and y are methods that raise
call f g           functions that raise NotImplementedError and say why
enum E A B         an enumeration
same f             decorators that give their function back, with or without arguments
none f / false f   functions that return None, or False, which is the true answer
value V = 128      a literal
from m: a b=c      names that are written in lucid.m; b is there called c; *module* is the module itself

A line that is indented further goes on with the one above.
"""

TABLES = ("core", "layers", "compiler", "devices", "distributed", "utils")
