"""Sparse tensors: the functions of `torch.sparse`.

A sparse tensor is a `Tensor` with another `layout`: it keeps the places and the values of the elements that are not zero.

>>> s = lucid.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
>>> s @ lucid.ones(3, 1)
tensor([[3.],
        [9.]])
"""
