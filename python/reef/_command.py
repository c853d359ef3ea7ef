"""The command `reef`, from Python:  python -m reef, or reef where the package is installed.

All of it is the compiled command, which runs no code of an experiment file. `run FILE --allow-code` alone is done here, in this interpreter.
"""
from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path


def find() -> str:
    """Of an installed package its own, of a source tree the built one, else whatever there is on the PATH."""
    here = Path(__file__).resolve().parent
    places = [here / "bin" / "reef", here.parent.parent / "build" / "release" / "reef"]
    known = next((str(place) for place in places if os.access(place, os.X_OK)), None)
    other = shutil.which("reef")
    if known is None and (other is None or Path(other).resolve() == Path(sys.argv[0]).resolve()):
        raise SystemExit("reef: the command was not found in this package; build it with `make` in a clone of Reef")
    return known or str(other)


def main() -> None:
    """Replaces this process by the command, unless code is to be run."""
    if sys.argv[1:2] == ["run"] and "--allow-code" in sys.argv:
        raise SystemExit(run_with_code(sys.argv[2:]))
    command = find()
    os.execv(command, ["reef", *sys.argv[1:]])


# ---- run --allow-code ----


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reef run", description="Runs an experiment file that may name Python code of its own "
                                     "(problem: {kind: python, module: mine.py, class: Mine}). Only for files that you trust.")
    parser.add_argument("file")
    parser.add_argument("--allow-code", action="store_true", required=True, help="the file may run code")
    parser.add_argument("-o", "--output", metavar="FOLDER", help="where the results go (default: results/NAME)")
    parser.add_argument("--set", metavar="PATH=VALUE", action="append", default=[], help="replaces a value of the file")
    parser.add_argument("--resume", action="store_true", help="resumes an interrupted run")
    parser.add_argument("--force", action="store_true", help="replaces the results of another configuration in the folder")
    parser.add_argument("--threads", type=int, help="cores to use (default: all)")
    parser.add_argument("--no-figures", action="store_true", help="does not call gnuplot")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress and no summary")
    return parser


def run_with_code(arguments: list[str]) -> int:
    """The exit code: 0, or 1 after a sentence."""
    from ._experiment import Results, run_texts
    from ._library import ReefError, call, lib

    given = _parser().parse_args(arguments)
    try:
        results: Results = run_texts(given.file, [text.encode() for text in given.set], folder=given.output, resume=given.resume,
                                     force=given.force, progress=not given.quiet, threads=given.threads, allow_code=True,
                                     home=Path("results"))
        drawn = given.no_figures or draw(results.folder / "figures")
        call(lib.reef_ffi_experiment_report, os.fsencode(results.folder))
    except ReefError as error:
        cause = error.__cause__
        if cause is not None and cause.__traceback__ is not None:
            import traceback

            traceback.print_exception(type(cause), cause, cause.__traceback__)
        print(f"reef run: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("reef run: interrupted; resume with --resume", file=sys.stderr)
        return 1
    if not drawn:
        print("reef run: no pictures: gnuplot is missing, or it failed", file=sys.stderr)
    if not given.quiet:
        print(table(results))
        print(f"results in {results.folder}. Report: {results.folder}/report.html")
    return 0


def draw(folder: Path) -> bool:
    """Pictures from the scripts that the run has just written."""
    for script in sorted(folder.glob("*.gp")):
        for kind in ("svg", "png", "pdf"):
            try:
                done = subprocess.run(["gnuplot", "-d", "-e", f"kind='{kind}'", script.name], cwd=folder, stderr=subprocess.DEVNULL)
            except OSError:
                return False
            if done.returncode != 0:
                return False
    return True


def table(results: "object") -> str:
    """The summary for a terminal: what varies, and the metrics without their errors, as far as there are any."""
    rows = results.rows  # type: ignore[attr-defined]
    columns = [name for name in rows[0] if not name.endswith("_se") and not name.startswith("config.")] if rows else []
    columns = [name for name in columns if any(row[name] == row[name] and row[name] != "" for row in rows)]  # NaN differs from itself
    lines = [columns] + [[f"{row[name]:.6g}" if isinstance(row[name], float) else str(row[name]) for name in columns] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(line, widths)) for line in lines)
