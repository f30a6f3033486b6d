"""The data sets: `make_*` generates, `fetch_*` downloads and verifies."""
