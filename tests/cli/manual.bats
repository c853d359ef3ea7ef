# Man pages and completion against the command itself.
bats_require_minimum_version 1.5.0

commands() { "$REEF" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | grep -vx -e help -e version; }
long_options() { "$REEF" "$1" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -e '--[a-z-]+'; }

@test "every option of --help stands in the man page, and no other" {
    for name in $(commands); do
        page=$BATS_TEST_DIRNAME/../../docs/man/reef-$name.1.scd
        for option in $(long_options "$name"); do
            grep -qF -e "*$option*" "$page" || { echo "reef-$name(1) lacks $option" && return 1; }
        done
        for option in $(grep -oE '^\*.*--[a-z-]+\*' "$page" | grep -oE -e '--[a-z-]+' | grep -vx -e --help); do
            long_options "$name" | grep -qx -e "$option" || { echo "reef-$name(1) invents $option" && return 1; }
        done
        grep -q '^# EXIT STATUS' "$page"
        "$REEF" "$name" --help | grep -q '^Exit codes: 0 '
        grep -q "reef-$name\*(1)" "$BATS_TEST_DIRNAME/../../docs/man/reef.1.scd"
    done
}

@test "the pages are in order for scdoc" {
    command -v scdoc >/dev/null || skip "no scdoc here"
    for page in "$BATS_TEST_DIRNAME"/../../docs/man/*.scd; do
        scdoc <"$page" >page.1
        [ -s page.1 ]
    done
    rm page.1
}

@test "bash completes commands, options, rules and words" {
    run -0 bash -c '
        source <("$REEF" completion bash)
        compopt() { :; }
        try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _reef; echo "${COMPREPLY[*]}"; }
        try reef agg
        try reef run --res
        try reef aggregate --rule bul
        try reef aggregate --integers ""
        try reef completion f
        try reef list sign_
        cd "$BATS_TEST_TMPDIR" && touch a.yaml b.txt && try reef check ""'
    [ "${lines[0]}" = "aggregate" ]
    [ "${lines[1]}" = "--resume" ]
    [ "${lines[2]}" = "bulyan" ]
    [ "${lines[3]}" = "majority trusted" ]
    [ "${lines[4]}" = "fish" ]
    [ "${lines[5]}" = "sign_flip" ]
    [ "${lines[6]}" = "a.yaml" ]
}

@test "every option is known to all three shells" {
    for shell in bash zsh fish; do
        "$REEF" completion "$shell" >"$BATS_TEST_TMPDIR/$shell"
        for name in $(commands); do
            for option in $(long_options "$name"); do
                grep -qF -e "${option#--}" "$BATS_TEST_TMPDIR/$shell" || { echo "$shell lacks $option" && return 1; }
            done
        done
    done
    bash -n "$BATS_TEST_TMPDIR/bash"
    run -2 "$REEF" completion csh
}

@test "zsh takes its script" {
    command -v zsh >/dev/null || skip "no zsh here"
    "$REEF" completion zsh >"$BATS_TEST_TMPDIR/_reef"
    zsh -f -n "$BATS_TEST_TMPDIR/_reef"
    run -0 zsh -f -c 'autoload -U compinit && compinit -u -D && source "$BATS_TEST_TMPDIR/_reef" && echo $_comps[reef]'
    [ "$output" = "_reef" ]
}

@test "fish completes commands and options" {
    command -v fish >/dev/null || skip "no fish here"
    "$REEF" completion fish >"$BATS_TEST_TMPDIR/reef.fish"
    run -0 fish --no-config -c 'source $BATS_TEST_TMPDIR/reef.fish; complete -C "reef agg"; complete -C "reef run --res"; complete -C "reef aggregate --rule bul"'
    [[ "$output" == "aggregate"*"--resume"*"bulyan"* ]]
}
