/* Keys for sorting where numbers are compared as fast as integers: the numbers themselves. Part of vec_*.h. */

typedef vec key;

KERNEL key k_of(vec a)
{
    return a;
}

KERNEL vec k_value(key a)
{
    return a;
}

KERNEL key k_min(key a, key b)
{
    return v_min(a, b);
}

KERNEL key k_max(key a, key b)
{
    return v_max(a, b);
}

/* Of numbers >= 0. */
KERNEL vec v_min_positive(vec a, vec b)
{
    return v_min(a, b);
}

KERNEL vec v_max_positive(vec a, vec b)
{
    return v_max(a, b);
}
