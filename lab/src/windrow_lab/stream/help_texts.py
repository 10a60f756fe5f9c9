"""What users may write about a simulated stream, in words; the help of its command shows it."""

ESTIMATE_MEANINGS: dict[str, str] = {
    "exact": "the true run times",
    "noisy": "each true run time times a random factor, exp(N(0, 1))",
    "learned": "from the workflows that came before, by kind of task",
}

WORKLOAD_MEANINGS: dict[str, str] = {
    "montage": "mosaics of the sky",
    "ligo": "searches for gravitational waves",
    "sipht": "searches for small RNAs",
    "mixture": "the three in turn",
}
