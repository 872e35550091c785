"""`torchrun` for one process: sets the environment that programs read, and runs the program here."""

import argparse
import os
import runpy
import sys


class env(argparse.Action):  # noqa: N801 (PyTorch's name)
    """An argument whose default is an environment variable PET_<NAME>.

    >>> from lucid.distributed._launch import env
    >>> issubclass(env, argparse.Action)
    True
    """

    def __init__(self, dest, default=None, required=False, **kwargs):
        default = os.environ.get(f"PET_{dest.upper()}", default)
        super().__init__(dest=dest, default=default, required=required and default is None, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values)


class check_env(argparse.Action):  # noqa: N801
    """A flag whose default is an environment variable PET_<NAME>.

    >>> from lucid.distributed._launch import check_env
    >>> issubclass(check_env, argparse.Action)
    True
    """

    def __init__(self, dest, default=False, **kwargs):
        super().__init__(
            dest=dest, const=True, nargs=0, default=bool(int(os.environ.get(f"PET_{dest.upper()}", default))), **kwargs
        )

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, self.const)


def get_args_parser():
    """The arguments of torchrun that make sense for one process.

    >>> from lucid.distributed._launch import get_args_parser
    >>> get_args_parser().parse_args(["train.py", "--lr", "1"]).training_script
    'train.py'
    """
    parser = argparse.ArgumentParser(prog="torchrun", description="Run a program as the one process of a group")
    parser.add_argument("--nnodes", action=env, type=str, default="1")
    parser.add_argument("--nproc-per-node", "--nproc_per_node", action=env, type=str, default="1")
    parser.add_argument("--node-rank", "--node_rank", action=env, type=int, default=0)
    parser.add_argument("--master-addr", "--master_addr", action=env, type=str, default="127.0.0.1")
    parser.add_argument("--master-port", "--master_port", action=env, type=int, default=29500)
    parser.add_argument("--rdzv-backend", "--rdzv_backend", action=env, type=str, default="static")
    parser.add_argument("--rdzv-endpoint", "--rdzv_endpoint", action=env, type=str, default="")
    parser.add_argument("--rdzv-id", "--rdzv_id", action=env, type=str, default="none")
    parser.add_argument("--max-restarts", "--max_restarts", action=env, type=int, default=0)
    parser.add_argument("--standalone", action=check_env)
    parser.add_argument("-m", "--module", action=check_env)
    parser.add_argument("training_script", type=str)
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def parse_args(args):
    """Arguments of torchrun.

    >>> from lucid.distributed._launch import parse_args
    >>> parse_args(["-m", "package.train"]).module
    True
    """
    return get_args_parser().parse_args(args)


def run(args):
    """Run the program that arguments name, as rank 0 of 1.

    >>> from lucid.distributed._launch import parse_args, run
    >>> run(parse_args(["--nproc-per-node", "2", "train.py"]))
    Traceback (most recent call last):
    NotImplementedError: ...
    """
    if str(args.nproc_per_node) not in ("1", "auto", "cpu", "gpu") or str(args.nnodes) not in ("1", "1:1"):
        raise NotImplementedError(
            f"torchrun: {args.nnodes} nodes of {args.nproc_per_node} processes are not there yet; Lucid has one process"
        )
    here = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 1, "LOCAL_WORLD_SIZE": 1, "GROUP_RANK": 0}
    here |= {"MASTER_ADDR": args.master_addr, "MASTER_PORT": args.master_port, "TORCHELASTIC_RUN_ID": args.rdzv_id}
    os.environ.update({name: str(value) for name, value in here.items()})
    sys.argv = [args.training_script, *args.training_script_args]
    if args.module:
        runpy.run_module(args.training_script, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(args.training_script))
        runpy.run_path(args.training_script, run_name="__main__")


def main(args=None):
    run(parse_args(args))
