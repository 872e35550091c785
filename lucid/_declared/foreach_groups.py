"""`torch.utils._foreach_utils`: tensors sorted by device and dtype, and which devices have ops over lists."""


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """{(device, dtype): (lists, indices)} of lists of tensors, which are grouped by their first list."""
    groups = {}
    for number, row in enumerate(zip(*tensorlistlist)):
        first = row[0]
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for into, item in zip(lists, row):
            into.append(item)
        if with_indices:
            indices.append(number)
    return groups


def _get_foreach_kernels_supported_devices():
    return ["cpu", "cuda"]


def _get_fused_kernels_supported_devices():
    return ["cpu", "cuda"]


def _device_has_foreach_support(device):
    return device.type in ("cpu", "cuda")


def _has_foreach_support(tensors, device):
    return _device_has_foreach_support(device)
