# shellcheck shell=sh
# Virtual environments, made once:  folder=build/... python=... offline=; . scripts/venv.sh
# folder: where they and their logs lie; python: the interpreter they are made with; offline: not empty: nothing is installed.

# environment NAME VENV-OPTIONS PIP-ARGUMENTS...: makes $folder/NAME once, one call of pip for each of the latter
environment() {
    home=$folder/$1 log=$folder/$1.log venv_options=$2
    shift 2
    [ ! -f "$home/complete" ] || return 0
    [ -z "$offline" ] || { echo "not installed, and --offline was given" >"$log"; return 1; }
    echo "Installing $home ..."
    # shellcheck disable=SC2086 # options without blanks
    "$python" -m venv --clear $venv_options "$home" >"$log" 2>&1 || return 1
    for requirements in "$@"; do
        # shellcheck disable=SC2086 # a list of options and packages
        timeout 900 "$home/bin/python" -m pip install --quiet --retries 2 --disable-pip-version-check $requirements \
            >>"$log" 2>&1 || return 1
    done
    touch "$home/complete"
}

why() { # why LOG: one line for people
    { grep -i '^error' "$1" || tail -n 1 "$1" || true; } | tail -n 1 | cut -c 1-160
}
