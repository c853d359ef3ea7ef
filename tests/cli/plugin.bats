# Plug-ins: the example is named everywhere, and what is no plug-in gets a sentence.
bats_require_minimum_version 1.5.0

setup() {
    build=$(dirname "$REEF")
    plugin=$build/examples/plugin.so
    wrong=$build/tests/plugins
    [ -f "$plugin" ] || skip "built without the examples"
    yaml=$BATS_TEST_DIRNAME/../../examples/plugin/plugin.yaml
    cd "$BATS_TEST_TMPDIR"
}

@test "what a plug-in brings is listed, with its parameters" {
    run -0 "$REEF" --plugin "$plugin" list
    grep -q '^  midmean ' <<<"$output"
    run -0 "$REEF" --plugin="$plugin" list attacks
    grep -q '^  drift ' <<<"$output"
    run -0 "$REEF" --plugin "$plugin" list points
    [[ "$output" == *"spread=1"* ]]
    run -2 "$REEF" list midmean
    [[ "$output" == *"there is no rule 'midmean'"* ]]
}

@test "an experiment names a rule, an attack and a problem of a plug-in" {
    run -0 "$REEF" --plugin "$plugin" check "$yaml"
    run -0 "$REEF" --plugin "$plugin" run "$yaml" --no-figures -o out
    # the mean follows the drift, the middle half does not: 100 rounds at speed 2 against a spread of 0.5
    mean=$(awk -F, 'NR > 1 && $2 == "mean" { print $4 }' out/summary.csv)
    middle=$(awk -F, 'NR > 1 && $2 == "midmean" { print $4 }' out/summary.csv)
    awk -v a="$mean" -v b="$middle" 'BEGIN { exit !(a > 20 && b < 0) }'
}

@test "the environment names plug-ins too; the same experiment without one is refused" {
    REEF_PLUGINS=:$plugin: run -0 "$REEF" check "$yaml"
    run -2 "$REEF" check "$yaml"
    [[ "$output" == *"points"* ]]
}

@test "aggregate takes a rule of a plug-in" {
    golden=$BATS_TEST_DIRNAME/../golden/npy
    run -0 "$REEF" --plugin "$plugin" aggregate --rule midmean -o out.npy "$golden"/fortran2.npy "$golden"/fortran2.npy
    cmp out.npy "$golden"/fortran2.npy
}

@test "a path without a slash is a file in the current folder" {
    cp "$plugin" here.so
    run -0 "$REEF" --plugin here.so list midmean
    run -3 "$REEF" --plugin libm.so.6 list
    [[ "$output" == *"cannot be loaded as a plug-in"* ]]
}

@test "what is no plug-in, or of another version, is refused with what to do" {
    [ -d "$wrong" ] || skip "built without the tests"
    echo "not a library" >text.so
    run -3 "$REEF" --plugin ./text.so list
    [[ "$output" == *"text.so cannot be loaded as a plug-in"*"docs/plugins.md"* ]]
    run -3 "$REEF" --plugin ./missing.so list
    [[ "$output" == *"No such file"* ]]
    run -3 "$REEF" --plugin "$wrong/no_plugin.so" list
    [[ "$output" == *"is not a Reef plug-in"*"REEF_PLUGIN"* ]]
    run -3 "$REEF" --plugin "$wrong/other_version.so" list
    [[ "$output" == *"version 1 of Reef's binary interface"*"rebuild it"* ]]
    run -3 "$REEF" --plugin "$plugin" --plugin "$plugin" list
    [[ "$output" == *"midmean' exists already"* ]]
    run -2 "$REEF" --plugin
    [[ "$output" == *"needs the path"* ]]
}

@test "an experiment file cannot load one" {
    sed "s|^name:|plugin: $plugin\nname:|" "$yaml" >bad.yaml
    run -2 "$REEF" check bad.yaml
    [[ "$output" == *"plugin"* ]]
}
