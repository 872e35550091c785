"""Names that PyTorch has and Lucid has not, and what to use instead: for their AttributeErrors, and a table of the documents.

Keys are names below `torch`; one that ends in * stands for all that begin so.
"""

INSTEAD = {
    "quantize_per_*": "lucid.generation.quantize: weights in 8 and 4 bits",
    "quantized_*": "lucid.generation.quantize and nn.functional.quantized_linear",
    "fake_quantize_*": "training in lower precision: lucid.autocast",
    "dequantize": "tensors in floating point: no tensor is quantized",
    "QInt8Storage": "tensors of int8 with scales of your own",
    "QUInt8Storage": "tensors of uint8 with scales of your own",
    "nn.CrossMapLRN2d": "nn.LocalResponseNorm",
    "nn.functional.scaled_mm": "lucid._scaled_mm, or matrix products in bfloat16",
    "nn.functional.scaled_grouped_mm": "nn.functional.grouped_mm",
    "sparse.to_sparse_semi_structured": "Tensor.to_sparse_bsr, or nn.utils.prune with dense weights",
    "sparse.SparseSemiStructuredTensor*": "Tensor.to_sparse_bsr",
    "cuda.CUDAPluggableAllocator": "the caching allocator; lucid.cuda.memory_stats shows it",
    "cuda.GreenContext": "one stream per thread",
    "jit.CompilationUnit": "lucid.compile",
    "jit.strict_fusion": "lucid.compile, which fuses; LUCID_VERBOSE=1 says what",
    "CompilationUnit": "lucid.compile",
    "Script*": "lucid.compile: it records functions, there is no script language",
    "utils.ThroughputBenchmark": "lucid.utils.benchmark",
    "uint1": "lucid.uint8",
    "uint2": "lucid.uint8",
    "uint3": "lucid.uint8",
    "uint4": "lucid.uint8; lucid.generation.quantize packs 4 bits",
    "uint5": "lucid.uint8",
    "uint6": "lucid.uint8",
    "uint7": "lucid.uint8",
    "jagged": "padded tensors and a mask; nn.utils.rnn.PackedSequence",
}


def instead_of(name):
    """What to use instead of a name below `torch`, or None.

    >>> from lucid._declared.instead import instead_of
    >>> instead_of("nn.CrossMapLRN2d"), instead_of("quantize_per_tensor") is None, instead_of("add")
    ('nn.LocalResponseNorm', False, None)
    """
    for key, text in INSTEAD.items():
        if name == key or key.endswith("*") and name.startswith(key[:-1]):
            return text
    return None


class MissingName(AttributeError):
    """The AttributeError for a name that a module lacks. Its text is made when it is read: `hasattr` raises it, too, and often.

    >>> from lucid._declared.instead import MissingName
    >>> str(MissingName("nn", "CrossMapLRN2d"))
    "lucid.nn has no 'CrossMapLRN2d', which PyTorch has: use nn.LocalResponseNorm"
    >>> str(MissingName("nn", "Linaer"))
    "module 'lucid.nn' has no attribute 'Linaer'. Did you mean 'Linear'?"
    """

    def __init__(self, space, wanted):
        super().__init__(space, wanted)
        self.space, self.wanted = space, wanted

    def __reduce__(self):
        return AttributeError, (str(self),)

    def __str__(self):
        import sys

        module = "lucid" if self.space == "lucid" else f"lucid.{self.space}"
        text = instead_of(self.wanted if self.space == "lucid" else f"{self.space}.{self.wanted}")
        if text:
            return f"{module} has no {self.wanted!r}, which PyTorch has: use {text}"
        near = ()
        if not self.wanted.startswith("_") and module in sys.modules:
            from difflib import get_close_matches

            near = get_close_matches(self.wanted, [n for n in dir(sys.modules[module]) if n[0] != "_"], 1, 0.8)
        return f"module {module!r} has no attribute {self.wanted!r}" + (f". Did you mean {near[0]!r}?" if near else "")


MissingName.__module__, MissingName.__qualname__ = "builtins", "AttributeError"  # how tracebacks call it
