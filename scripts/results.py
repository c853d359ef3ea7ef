"""What scripts that run experiments share."""
import csv
import pathlib
import subprocess
import sys


def arguments(usage, default):
    """The command REEF, the folder of the results and further options of `reef run`; without a command the usage is printed."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(usage)
    return sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else default), sys.argv[3:]


def summary(reef, name, folder, options):
    """The rows of summary.csv of experiments/NAME.yaml; what the folder has already is not run again."""
    experiment = pathlib.Path(__file__).parent.parent / "experiments" / (name + ".yaml")
    try:
        subprocess.run([reef, "run", str(experiment), "--resume", "--force", "--no-figures", "--quiet", "-o", str(folder), *options],
                       check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit("%s: %s" % (reef, error))
    with open(folder / "summary.csv", newline="") as file:
        return list(csv.DictReader(file))
