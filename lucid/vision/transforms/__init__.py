"""Transforms of pictures with torchvision's names: resize, crop, flip, turn, colours, policies. For PIL images and tensors.

>>> from lucid.vision import transforms as T
>>> T.Compose([T.Resize(8), T.CenterCrop(8), T.Normalize(0.5, 0.5)])(lucid.rand(3, 16, 20)).shape
lucid.Size([3, 8, 8])
"""

from . import functional
from ._classes import (
    CenterCrop,
    ColorJitter,
    Compose,
    ConvertImageDtype,
    ElasticTransform,
    FiveCrop,
    GaussianBlur,
    Grayscale,
    Lambda,
    LinearTransformation,
    Normalize,
    Pad,
    PILToTensor,
    RandomAdjustSharpness,
    RandomAffine,
    RandomApply,
    RandomAutocontrast,
    RandomChoice,
    RandomCrop,
    RandomEqualize,
    RandomErasing,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomInvert,
    RandomOrder,
    RandomPerspective,
    RandomPosterize,
    RandomResizedCrop,
    RandomRotation,
    RandomSolarize,
    RandomVerticalFlip,
    Resize,
    TenCrop,
    ToPILImage,
    ToTensor,
)
from ._policies import AugMix, AutoAugment, AutoAugmentPolicy, RandAugment, TrivialAugmentWide
from .functional import InterpolationMode

__all__ = [n for n, v in list(globals().items()) if isinstance(v, type)] + ["functional"]
