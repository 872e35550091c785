"""Device meshes of one device."""


class DeviceMesh:
    """Devices in a grid whose dimensions have names: one device.

    >>> mesh = lucid.distributed.DeviceMesh("cpu", [0])
    >>> mesh.size(), mesh.get_rank(), mesh.get_local_rank()
    (1, 0, 0)
    """

    def __init__(self, device_type, mesh=None, *, mesh_dim_names=None, **settings):
        from .. import _C

        mesh = _C.tensor([0] if mesh is None else mesh)
        if mesh.numel() != 1 or mesh.item() != 0:
            raise NotImplementedError(f"DeviceMesh: {mesh.numel()} devices are not there; Lucid has one process")
        self.device_type, self.mesh, self.mesh_dim_names = device_type, mesh, mesh_dim_names

    @property
    def ndim(self):
        return self.mesh.ndim

    @property
    def shape(self):
        return tuple(self.mesh.shape)

    def size(self, mesh_dim=None):
        return 1

    def get_rank(self):
        return 0

    def get_local_rank(self, mesh_dim=None):
        return 0

    def get_coordinate(self):
        return [0] * self.ndim

    def get_group(self, mesh_dim=None):
        from ._group import checked

        return checked(None)

    def get_all_groups(self):
        return [self.get_group()] * self.ndim

    def __getitem__(self, names):
        names = (names,) if isinstance(names, str) else tuple(names)
        if not self.mesh_dim_names or not set(names) <= set(self.mesh_dim_names):
            raise KeyError(f"Invalid mesh_dim_names {names}: there are {self.mesh_dim_names}")
        return DeviceMesh(self.device_type, self.mesh.reshape((1,) * len(names)).tolist(), mesh_dim_names=names)

    def __repr__(self):
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()}, mesh_dim_names={self.mesh_dim_names})"


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    """A mesh of a shape: all its dimensions are 1.

    >>> lucid.distributed.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))["dp"].shape
    (1,)
    """
    if any(size != 1 for size in mesh_shape):
        raise NotImplementedError(f"init_device_mesh: a mesh of shape {tuple(mesh_shape)} is not there; Lucid has one process")
    nested = 0
    for _ in mesh_shape:
        nested = [nested]
    return DeviceMesh(device_type, nested, mesh_dim_names=mesh_dim_names)
