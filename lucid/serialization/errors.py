"""Exceptions of reading files, besides the system's own."""

import pickle

UnpicklingError = pickle.UnpicklingError


class CorruptFileError(RuntimeError):
    """A file that is truncated, damaged, or not of the format its beginning promises.

    >>> import io
    >>> try:
    ...     lucid.load(io.BytesIO(b"PK\\x03\\x04 and then nothing"))
    ... except lucid.serialization.CorruptFileError as error:
    ...     print(error)
    not a whole zip archive: its end record is missing (a truncated file?)
    """


class NewerVersionError(RuntimeError):
    """A file of a format this version of Lucid does not know yet.

    >>> from lucid.serialization import versions
    >>> try:
    ...     versions.check(b'{"format": 99, "ops": 1}')
    ... except lucid.serialization.NewerVersionError as error:
    ...     print(str(error)[:43])
    the file was written with format version 99
    """


class MissingDeviceError(RuntimeError):
    """A file with tensors on a device that this machine does not have; map_location brings them elsewhere.

    >>> issubclass(lucid.serialization.MissingDeviceError, RuntimeError)
    True
    """
