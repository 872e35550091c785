"""Published weights by tag: where their files are looked for, what is checked, and how images are prepared for them.

`_weights.py` has a row per tag. A file is taken from `$LUCID_HOME/weights` (else `~/.cache/lucid/weights`), or from the
folder where PyTorch keeps its checkpoints; its SHA-256 must begin as the row says. Repositories of the Hugging Face hub,
"owner/name", are found in its cache. Nothing is ever fetched but by `download` and `load_from_pretrained_entry`.
"""

import dataclasses
import hashlib
import os

from .. import _C, hub, serialization
from ..nn import functional as F

_URL = "https://download.pytorch.org/models/"
_COLUMNS = ("name", "tag", "file", "kind", "resize", "crop", "interpolation", "normalisation", "metric", "licence", "default")
_NORMS = {"imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), "half": ((0.5,) * 3, (0.5,) * 3), "-": None}


class Tag:
    """One row: `name`, `tag`, `file`, `sha256` (its first digits), `metric`, `licence`, and the preprocessing.

    >>> lucid.models.weights_of("resnet_50_cls")[1].file
    'resnet50-11ad3fa6.pth'
    """

    def __init__(self, line):
        for column, value in zip(_COLUMNS, (line.split() + [""])[: len(_COLUMNS)]):
            setattr(self, column, value)
        self.sha256 = self.file.rsplit("-", 1)[1].split(".")[0]
        self.url = _URL + self.file
        self.licence = None if self.licence == "-" else self.licence

    def __repr__(self):
        return f"<{self.name} {self.tag}: {self.file}, {self.metric}>"

    def fields(self):
        """What of a config the weights fix: inputs that were normalised otherwise, heads that are in the file, sizes."""
        if self.name in ("googlenet", "inception_v3"):
            return {"transform_input": True}
        if self.kind == "segment":
            return {"aux_loss": True}
        if self.kind == "detect":
            return {"norm": "frozen", "norm_eps": 0.0}
        return {"image_size": int(self.crop)} if self.name.startswith("vit_") else {}


def published_name(name):
    """torchvision's name of a factory, or the name itself.

    >>> from lucid.models.weights import published_name
    >>> published_name("resnet_50_cls"), published_name("resnet18")
    ('resnet50', 'resnet18')
    """
    from . import registry

    registry.is_model(name)
    return registry.PUBLISHED.get(name, name)


def weights_of(name):
    """The tags of a model's published weights.

    >>> [tag.tag for tag in lucid.models.weights_of("resnet50")]
    ['IMAGENET1K_V1', 'IMAGENET1K_V2']
    """
    from ._weights import ROWS

    known = published_name(name)
    return [Tag(line) for line in ROWS.strip().splitlines() if line.split(" ", 1)[0] == known]


def tag_of(name, tag="DEFAULT"):
    """The row of a tag; "DEFAULT": the best; a text as "ResNet50_Weights.IMAGENET1K_V2" is understood.

    >>> lucid.models.weights.tag_of("resnet18").metric
    'acc@1=69.758'
    """
    tags, wanted = weights_of(name), str(tag).rsplit(".", 1)[-1]
    for row in tags:
        if row.tag == wanted or (wanted == "DEFAULT" and row.default):
            return row
    known = ", ".join(row.tag for row in tags) or "none"
    raise ValueError(f"{name}: no file, folder or tag of weights is named {tag!r}; its tags: {known}")


def _homes():
    home = os.environ.get("LUCID_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "lucid")
    return [os.path.join(home, "weights"), os.path.join(hub.get_dir(), "checkpoints")]


def _checked(path, sha256, what):
    """The path, if the file's SHA-256 begins so."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if not digest.hexdigest().startswith(sha256):
        raise serialization.CorruptFileError(
            f"{path} is not what {what} was: its SHA-256 begins with {digest.hexdigest()[:8]}, not {sha256[:8]}"
        )
    return path


def find(row):
    """The path of a tag's file on this machine, checked.

    >>> lucid.models.weights.find(lucid.models.weights.tag_of("resnet18"))  # doctest: +SKIP
    '.../checkpoints/resnet18-f37072fd.pth'
    """
    for folder in _homes():
        path = os.path.join(folder, row.file)
        if os.path.exists(path):
            return _checked(path, row.sha256, f"{row.name} {row.tag}")
    raise FileNotFoundError(
        f"{row.file} is in none of {', '.join(_homes())}; lucid.models.download({row.name!r}, {row.tag!r}) fetches it"
    )


def find_repository(name):
    """The folder of a repository "owner/name" in the cache of the Hugging Face hub; None: it is not there.

    >>> lucid.models.weights.find_repository("nobody/nothing") is None
    True
    """
    home = os.environ.get("HF_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "huggingface")
    home = os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    folder = os.path.join(home, "models--" + name.replace("/", "--"))
    reference = os.path.join(folder, "refs", "main")
    if os.path.exists(reference):
        with open(reference, encoding="utf-8") as file:
            path = os.path.join(folder, "snapshots", file.read().strip())
            return path if os.path.isdir(path) else None
    return None


def download(name, tag="DEFAULT", progress=True):
    """Fetch a tag's file into `$LUCID_HOME/weights`, check it, and return its path. With load_from_pretrained_entry, the only
    function that uses a network.

    >>> lucid.models.download("resnet18")  # doctest: +SKIP
    '.../weights/resnet18-f37072fd.pth'
    """
    row = tag_of(name, tag)
    try:
        return find(row)
    except FileNotFoundError:
        path = os.path.join(_homes()[0], row.file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        hub.download_url_to_file(row.url, path, row.sha256, progress)
        return path


@dataclasses.dataclass(frozen=True)
class PretrainedEntry:
    """A file of weights somewhere: its address, its SHA-256 and the config of the model that it is for.

    >>> config = lucid.models.LeNetConfig()
    >>> lucid.models.PretrainedEntry("https://example.org/lenet.pth", "0" * 64, config, num_params=61706).num_params
    61706
    """

    url: str
    sha256: str
    config: object
    num_params: int = 0
    description: str = ""


def load_from_pretrained_entry(model, entry, *, name, strict=True):
    """Give a model the weights of a PretrainedEntry. Its file is kept in `$LUCID_HOME/weights`, and fetched if it is not there.

    name: what the file is kept as. strict=False: keys that the file lacks or has besides are passed over.

    >>> model = lucid.models.LeNetForImageClassification(lucid.models.LeNetConfig())
    >>> entry = lucid.models.PretrainedEntry("https://example.org/gpt2.pth", "0" * 64, lucid.models.GPT2Config())
    >>> lucid.models.load_from_pretrained_entry(model, entry, name="gpt2")
    Traceback (most recent call last):
    TypeError: the weights are for a model of type 'gpt2', not 'lenet'
    """
    kinds = [c.model_type for c in (entry.config, model.config)]
    if kinds[0] != kinds[1]:
        raise TypeError(f"the weights are for a model of type {kinds[0]!r}, not {kinds[1]!r}")
    if os.path.basename(name) != name or not name:
        raise ValueError(f"name is the name of a file, not {name!r}")
    path = os.path.join(_homes()[0], f"{name}-{entry.sha256[:8]}")
    if os.path.exists(path):
        _checked(path, entry.sha256, name)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        hub.download_url_to_file(entry.url, path, entry.sha256, progress=False)
    model.load_state_dict(serialization.load(path, map_location=model.device), strict=strict)


def _pixels(image):
    """An image of any kind as a tensor (channels, height, width) of floats; whole numbers are parts of 255."""
    if isinstance(image, _C.Tensor):
        return image if image.is_floating_point() else image.to(_C.float32) / 255
    if hasattr(image, "convert"):  # of PIL
        image = image.convert("RGB")
        width, height = image.size
        x = _C.frombuffer(bytearray(image.tobytes()), dtype=_C.uint8).view(height, width, 3)
    else:
        x = _C.as_tensor(image)
        if x.ndim == 2:
            x = x.unsqueeze(-1).expand(-1, -1, 3)
    if x.ndim != 3:
        raise ValueError(f"an array of an image is (height, width, channels), not {tuple(x.shape)}")
    x = x.permute(2, 0, 1)
    return x if x.is_floating_point() else x.to(_C.float32) / 255


class Preprocessing:
    """Images as a model's weights want them: resized, cropped, normalised. See `transforms_of`.

    >>> prepare = lucid.models.weights.Preprocessing(resize=8, crop=6, mean=(0.5,) * 3, std=(0.5,) * 3)
    >>> tuple(prepare(lucid.zeros(3, 20, 10)).shape)
    (3, 6, 6)
    """

    def __init__(self, resize=None, crop=None, interpolation="bilinear", mean=None, std=None):
        self.resize, self.crop, self.interpolation, self.mean, self.std = resize, crop, interpolation, mean, std

    def __call__(self, image):
        """A tensor (..., channels, height, width), an array (height, width, channels) or an image of PIL."""
        x = _pixels(image)
        batched = x if x.ndim == 4 else x.unsqueeze(0)
        if self.resize is not None:
            height, width = batched.shape[-2:]
            short = min(height, width)
            size = tuple(int(self.resize * side / short) for side in (height, width))
            if size != (height, width):
                batched = F.interpolate(batched, size, mode=self.interpolation, align_corners=False, antialias=True)
                batched = batched.clamp(0, 1) if self.interpolation == "bicubic" else batched
        if self.crop is not None:
            batched = self.cropped(batched)
        if self.mean is not None:
            mean, std = (_C.tensor(v, device=x.device).to(x.dtype).view(-1, 1, 1) for v in (self.mean, self.std))
            batched = (batched - mean) / std
        return batched if x.ndim == 4 else batched[0]

    def cropped(self, x):
        height, width = x.shape[-2:]
        tall, wide = max(self.crop - height, 0), max(self.crop - width, 0)
        if tall or wide:
            x = F.pad(x, (wide // 2, (wide + 1) // 2, tall // 2, (tall + 1) // 2))
            height, width = x.shape[-2:]
        top, left = (int(round((side - self.crop) / 2.0)) for side in (height, width))
        return x[..., top : top + self.crop, left : left + self.crop]

    def __repr__(self):
        return f"Preprocessing({', '.join(f'{name}={value!r}' for name, value in vars(self).items() if value is not None)})"


def transforms_of(name, tag="DEFAULT"):
    """What prepares images for a model's published weights, as they were evaluated.

    >>> lucid.models.transforms_of("resnet_50_cls", "IMAGENET1K_V1").crop
    224
    """
    row = tag_of(name, tag)
    number = lambda text: None if text == "-" else int(text)
    mean, std = _NORMS[row.normalisation] or (None, None)
    interpolation = "bilinear" if row.interpolation == "-" else row.interpolation
    return Preprocessing(number(row.resize), number(row.crop), interpolation, mean, std)
