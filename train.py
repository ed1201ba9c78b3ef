"""Train a policy by self-play: ``python train.py --config configs/quick.yaml``."""

import argparse
import sys
import time
from pathlib import Path


def build_parser() -> argparse.ArgumentParser:
    """The command line; flags and their help come from the configuration's fields."""
    from agents.training.config import add_flags

    parser = argparse.ArgumentParser(
        prog="python train.py",
        description="Train a policy for Pitch by self-play, measure it, and save it.",
        epilog="A run folder holds the policy to use, policy.safetensors, and all that --dry-run lists. Watch it with: "
        "tensorboard --logdir runs",
    )
    parser.add_argument("--config", help="YAML file; flags given besides it win over it")
    parser.add_argument("--run-dir", help="folder of the run (default: runs/NAME-seedS-TIME)")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --run-dir, or begin it")
    parser.add_argument("--dry-run", action="store_true", help="print the plan, with the minutes it takes, and stop")
    add_flags(parser)
    return parser


def main(arguments: list[str] | None = None) -> int:
    parser = build_parser()
    options = parser.parse_args(arguments)
    from agents.training.config import Config, read_flags

    try:
        source = options.config
        if source is None:
            if not (options.resume and options.run_dir):
                parser.error("give --config FILE, or --resume with --run-dir DIR")
            source = str(Path(options.run_dir) / "config.yaml")
        config = Config.read(source, read_flags(options))
        if options.resume and not options.run_dir:
            parser.error("--resume needs the --run-dir of the run to go on with")
        default = Path("runs") / f"{Path(source).stem}-seed{config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
        folder = Path(options.run_dir) if options.run_dir else default
        return _plan(config, folder) if options.dry_run else _train(config, folder, options.resume)
    except (ValueError, OSError, RuntimeError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, SystemError) as error:
        from pitch_env.kernels import is_interrupt

        if not is_interrupt(error):
            raise
        print(
            "train.py: stopped; what was saved is whole, and --resume with --run-dir goes on from it", file=sys.stderr
        )
        return 130


def _plan(config, folder: Path) -> int:
    import torch
    from rich.console import Console

    from agents.training.parallel import Ranks
    from agents.training.plan import make_plan, show_plan

    ranks = Ranks(torch.device(config.device))
    try:
        show_plan(make_plan(config, folder, ranks), Console(quiet=ranks.rank > 0))
    finally:
        ranks.close()
    return 0


def _train(config, folder: Path, is_resumed: bool) -> int:
    from agents.training.run import Run

    run = Run(config, folder, is_resumed)
    try:
        if not run.train():
            run.panel.print(f"stopped and saved; go on with: python train.py --resume --run-dir {folder}")
            return 130
        run.finish()
        run.panel.print(f"policy: {folder}/policy.safetensors   curves: tensorboard --logdir {folder}")
    finally:
        run.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
