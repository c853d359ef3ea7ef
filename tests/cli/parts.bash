# has_part NAME: whether this build has an optional part (network, MPI, ...), as `reef doctor --json` says.
has_part() {
    "$REEF" doctor --json | python3 -c '
import json, sys
sys.exit(not any(part["found"] for part in json.load(sys.stdin)["parts"] if part["name"] == sys.argv[1]))' "$1"
}
