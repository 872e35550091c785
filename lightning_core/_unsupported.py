"""Benchmarks of Apple's frameworks: there are none here, and the answer says so."""


def _not_supported():
    return {"ok": False, "status": "not supported", "avg_ms": -1.0}


def coreml_inference_benchmark(model_path, n=1024, iters=10):
    """Not supported: Core ML is part of macOS.

    >>> coreml_inference_benchmark("model.mlpackage")
    {'ok': False, 'status': 'not supported', 'avg_ms': -1.0}
    """
    return _not_supported()


def mpsgraph_vector_add_benchmark(n=1024, iters=10):
    """Not supported: MPSGraph is part of macOS.

    >>> mpsgraph_vector_add_benchmark()["ok"]
    False
    """
    return _not_supported()


def mpsgraph_train_step_benchmark(n=1024, iters=10):
    """Not supported: MPSGraph is part of macOS.

    >>> mpsgraph_train_step_benchmark()["avg_ms"]
    -1.0
    """
    return _not_supported()
