"""Adapters of low rank (LoRA): fine-tune a model by a few small matrices beside its own, in the manner of peft.

>>> model = lucid.nn.Sequential(lucid.nn.Linear(8, 8), lucid.nn.Linear(8, 2))
>>> model = lucid.lora.get_peft_model(model, lucid.lora.LoraConfig(r=2, target_modules=["0"]))
>>> model.print_trainable_parameters()
trainable params: 32 || all params: 122 || trainable%: 26.2295

Names and files are peft's: what one saves, the other reads. `docs/lora.md` has more.
"""

from .config import LoraConfig, TaskType
from .files import get_peft_model_state_dict, load_checkpoint, set_peft_model_state_dict
from .layers import LoraLayer
from .model import PeftModel, get_peft_model
from .training import StepMetrics, Trainer, cross_entropy_loss, schedule

__all__ = [
    "LoraConfig",
    "LoraLayer",
    "PeftModel",
    "StepMetrics",
    "TaskType",
    "Trainer",
    "cross_entropy_loss",
    "get_peft_model",
    "get_peft_model_state_dict",
    "load_checkpoint",
    "schedule",
    "set_peft_model_state_dict",
]
