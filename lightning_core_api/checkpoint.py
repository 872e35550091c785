"""Checkpoint files (lightning_core_integrated_api has the same names).

>>> validate_checkpoint("nowhere.npz")["ok"]
False
"""

from lightning_core._integrated.checkpoints import (  # noqa: F401
    CheckpointValidationError,
    checkpoint_compatibility_matrix,
    checkpoint_conversion_diagnostics,
    load_checkpoint,
    load_model_checkpoint,
    load_runner_checkpoint,
    runner_checkpoint_compatibility_matrix,
    save_checkpoint,
    save_model_checkpoint,
    save_runner_checkpoint_v2,
    validate_checkpoint,
    validate_checkpoint_conversion,
)
