"""Readers of data sets that lie on this machine, with torchvision's classes and folders. Nothing is downloaded.

`MNIST`, `FashionMNIST`, `KMNIST`, `CIFAR10`, `CIFAR100`, `ImageFolder`. An element is (picture, label). Pictures are PIL
images as torchvision's; with `image="tensor"` they are tensors (channels, height, width) of uint8, and Pillow is not needed.

>>> from lucid.vision import datasets
>>> datasets.MNIST("/nowhere")
Traceback (most recent call last):
FileNotFoundError: MNIST: no file train-images-idx3-ubyte ...
"""

import gzip
import os
import pickle
import struct

from .. import _C
from ..utils.data import Dataset
from .transforms._pictures import _pillow, pil_to_tensor, to_pil_image

_IMAGES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


class VisionDataset(Dataset):
    """What the readers share: a root, transforms, the kind of picture.

    >>> from lucid.vision.datasets import VisionDataset
    >>> VisionDataset("/data").root
    '/data'
    """

    def __init__(self, root, transform=None, target_transform=None, *, image="pil"):
        if image not in ("pil", "tensor"):
            raise ValueError(f"image is 'pil' or 'tensor', not {image!r}")
        self.root = os.path.expanduser(os.fspath(root))
        self.transform, self.target_transform, self.image = transform, target_transform, image

    def _finished(self, picture, label):
        if self.transform is not None:
            picture = self.transform(picture)
        return picture, label if self.target_transform is None else self.target_transform(label)

    def _shown(self, tensor):
        return tensor if self.image == "tensor" else to_pil_image(tensor)


class _InMemory(VisionDataset):
    """All pictures (n, channels, height, width) as `pictures`, labels as `targets`."""

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self._finished(self._shown(self.pictures[index]), int(self.targets[index]))


def _no_download(name, download, root, source):
    if download:
        raise NotImplementedError(f"{name}: download=True: get {source} and put it into {root}; lucid downloads nothing")


def read_idx(path):
    """A file in MNIST's format as a tensor of bytes; path may lack the ending .gz of the file.

    >>> import os, struct, tempfile
    >>> from lucid.vision.datasets import read_idx
    >>> path = os.path.join(tempfile.mkdtemp(), "labels")
    >>> _ = open(path, "wb").write(struct.pack(">HBBI", 0, 8, 1, 3) + bytes([5, 0, 4]))
    >>> read_idx(path)
    tensor([5, 0, 4], dtype=lucid.uint8)
    """
    if os.path.exists(path):
        with open(path, "rb") as file:
            data = file.read()
    else:
        with gzip.open(path + ".gz") as file:
            data = file.read()
    zeros, kind, dims = struct.unpack(">HBB", data[:4]) if len(data) >= 4 else (1, 0, 0)
    start = 4 + 4 * dims
    if zeros or kind != 8 or not 1 <= dims <= 4 or len(data) < start:
        raise ValueError(f"{path} is not an IDX file of bytes")
    shape = struct.unpack(f">{dims}I", data[4:start])
    count = 1
    for n in shape:
        count *= n
    if len(data) - start != count:
        raise ValueError(f"{path}: {len(data) - start} bytes of data, and its shape {shape} needs {count}: incomplete?")
    return _C.frombuffer(bytearray(data[start:]), dtype=_C.uint8).view(shape) if count else _C.empty(shape, dtype=_C.uint8)


class MNIST(_InMemory):
    """Handwritten digits, 28 × 28: root/MNIST/raw (or root itself) has the four IDX files, with or without .gz.

    >>> from lucid.vision import datasets
    >>> datasets.MNIST.classes[3]
    '3 - three'
    """

    source = "the four files of https://ossci-datasets.s3.amazonaws.com/mnist/ (train-images-idx3-ubyte.gz ...)"
    words = "zero one two three four five six seven eight nine"
    classes = [f"{i} - {word}" for i, word in enumerate(words.split())]

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False, *, image="pil"):
        super().__init__(root, transform, target_transform, image=image)
        name, part = type(self).__name__, "train" if train else "t10k"
        self.train = train
        _no_download(name, download, os.path.join(self.root, name, "raw"), self.source)
        files = (f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte")
        folders = (os.path.join(self.root, name, "raw"), os.path.join(self.root, "raw"), self.root)
        for folder in folders:
            paths = [os.path.join(folder, f) for f in files]
            if all(os.path.exists(p) or os.path.exists(p + ".gz") for p in paths):
                break
        else:
            raise FileNotFoundError(
                f"{name}: no file {files[0]} or {files[1]} (or .gz) in {', '.join(folders)}: get {self.source}"
            )
        self.data, self.targets = read_idx(paths[0]), read_idx(paths[1]).long()
        if len(self.data) != len(self.targets) or self.data.ndim != 3:
            raise ValueError(f"{paths[0]} has shape {tuple(self.data.shape)}, {paths[1]} {tuple(self.targets.shape)}")
        self.pictures = self.data[:, None]

    @property
    def class_to_idx(self):
        return {name: i for i, name in enumerate(self.classes)}


class FashionMNIST(MNIST):
    """Pieces of clothing, 28 × 28, in MNIST's format: root/FashionMNIST/raw.

    >>> from lucid.vision import datasets
    >>> datasets.FashionMNIST.classes[0]
    'T-shirt/top'
    """

    source = "the four files of http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
    classes = "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot".split(",")


class KMNIST(MNIST):
    """Old Japanese letters, 28 × 28, in MNIST's format: root/KMNIST/raw.

    >>> from lucid.vision import datasets
    >>> len(datasets.KMNIST.classes)
    10
    """

    source = "the four files of http://codh.rois.ac.jp/kmnist/dataset/kmnist/"
    classes = "o ki su tsu na ha ma ya re wo".split()


class _Arrays(pickle.Unpickler):
    """Reads dicts of NumPy arrays and refuses everything else: a pickle can name any function."""

    ALLOWED = {("_reconstruct", "multiarray"), ("ndarray", "numpy"), ("dtype", "numpy"), ("_frombuffer", "numeric")}

    def find_class(self, module, name):
        if module.split(".")[0] == "numpy" and (name, module.rsplit(".", 1)[-1]) in self.ALLOWED:
            return super().find_class(module, name)
        if (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not part of a data set")


class CIFAR10(_InMemory):
    """Photographs of ten kinds, 32 × 32: root/cifar-10-batches-py (the "python version", which needs NumPy) or
    root/cifar-10-batches-bin (the "binary version", which does not).

    >>> from lucid.vision import datasets
    >>> datasets.CIFAR10("/nowhere")
    Traceback (most recent call last):
    FileNotFoundError: CIFAR10: neither cifar-10-batches-py nor cifar-10-batches-bin in /nowhere: ...
    """

    folders = ("cifar-10-batches-py", "cifar-10-batches-bin")
    parts = {True: [f"data_batch_{i}" for i in range(1, 6)], False: ["test_batch"]}
    labels, label_bytes = b"labels", 1
    source = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz (MD5 c58f30108f718f92721af3b95e74349a) and unpack it"
    classes = "airplane automobile bird cat deer dog frog horse ship truck".split()

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False, *, image="pil"):
        super().__init__(root, transform, target_transform, image=image)
        name = type(self).__name__
        self.train = train
        _no_download(name, download, self.root, self.source)
        folder = next((f for f in self.folders if os.path.isdir(os.path.join(self.root, f))), None)
        if folder is None:
            raise FileNotFoundError(f"{name}: neither {' nor '.join(self.folders)} in {self.root}: get {self.source}")
        read = self._binary if folder.endswith("bin") or folder.endswith("binary") else self._pickled
        found = [read(os.path.join(self.root, folder, part)) for part in self.parts[bool(train)]]
        self.pictures = _C.cat([p for p, _ in found]).view(-1, 3, 32, 32)
        self.targets = [label for _, labels in found for label in labels]

    @property
    def data(self):
        """The pictures as torchvision keeps them: (n, height, width, channels)."""
        return self.pictures.permute(0, 2, 3, 1)

    @property
    def class_to_idx(self):
        return {name: i for i, name in enumerate(self.classes)}

    def _pickled(self, path):
        with open(path, "rb") as file:
            entry = _Arrays(file, encoding="bytes").load()
        return _C.from_numpy(entry[b"data"]).view(-1, 3072).clone(), [int(label) for label in entry[self.labels]]

    def _binary(self, path):
        with open(path + ".bin", "rb") as file:
            data = bytearray(file.read())
        row = self.label_bytes + 3072
        if not data or len(data) % row:
            raise ValueError(f"{path}.bin: {len(data)} bytes are no whole number of rows of {row}")
        rows = _C.frombuffer(data, dtype=_C.uint8).view(-1, row)
        return rows[:, self.label_bytes :].clone(), rows[:, self.label_bytes - 1].tolist()


class CIFAR100(CIFAR10):
    """Photographs of a hundred kinds, 32 × 32: root/cifar-100-python or root/cifar-100-binary.

    >>> from lucid.vision import datasets
    >>> datasets.CIFAR100("/nowhere")
    Traceback (most recent call last):
    FileNotFoundError: CIFAR100: neither cifar-100-python nor cifar-100-binary in /nowhere: ...
    """

    folders = ("cifar-100-python", "cifar-100-binary")
    parts = {True: ["train"], False: ["test"]}
    labels, label_bytes = b"fine_labels", 2
    source = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz (MD5 eb9058c3a382ffc7106e4002c42a8d85) and unpack it"
    classes = [str(i) for i in range(100)]


def default_loader(path):
    """The picture of a file, in RGB, as a PIL image.

    >>> from lucid.vision.datasets import default_loader
    >>> callable(default_loader)
    True
    """
    with open(path, "rb") as file:
        return _pillow().open(file).convert("RGB")


class ImageFolder(VisionDataset):
    """Pictures in folders, one folder per class: root/cat/1.png, root/dog/7.png ...; needs Pillow.

    >>> import os, tempfile
    >>> from lucid.vision import datasets
    >>> root = tempfile.mkdtemp()
    >>> for name in ("cat", "dog"):
    ...     os.mkdir(os.path.join(root, name))
    ...     open(os.path.join(root, name, "1.png"), "w").close()
    >>> data = datasets.ImageFolder(root)
    >>> data.classes, [label for _, label in data.samples]
    (['cat', 'dog'], [0, 1])
    """

    def __init__(
        self,
        root,
        transform=None,
        target_transform=None,
        loader=default_loader,
        is_valid_file=None,
        allow_empty=False,
        *,
        image="pil",
    ):
        super().__init__(root, transform, target_transform, image=image)
        self.loader = loader
        self.classes = sorted(e.name for e in os.scandir(self.root) if e.is_dir())
        if not self.classes:
            raise FileNotFoundError(f"Couldn't find any class folder in {self.root}.")
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        good = is_valid_file or (lambda path: path.lower().endswith(_IMAGES))
        self.samples = []
        for name, label in self.class_to_idx.items():
            for folder, _, files in sorted(os.walk(os.path.join(self.root, name), followlinks=True)):
                self.samples += [(os.path.join(folder, f), label) for f in sorted(files) if good(os.path.join(folder, f))]
        without = sorted(set(self.classes) - {self.classes[label] for _, label in self.samples})
        if without and not allow_empty:
            raise FileNotFoundError(
                f"Found no valid file for the classes {', '.join(without)}. Supported: {', '.join(_IMAGES)}"
            )
        self.imgs, self.targets = self.samples, [label for _, label in self.samples]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        picture = self.loader(path)
        return self._finished(pil_to_tensor(picture) if self.image == "tensor" else picture, label)
