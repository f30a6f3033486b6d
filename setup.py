"""Loops in C. Where they cannot be compiled, the package installs without them and runs them in torch and numpy."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "bcn.layers.fused._pooled",
            ["bcn/layers/fused/csrc/pooled.c"],
            depends=["bcn/layers/fused/csrc/tiles.h", "bcn/layers/fused/csrc/passes.h"],
            extra_compile_args=["-O3", "-ffp-contract=fast", "-Wno-psabi"],
            optional=True,
        ),
        Extension(
            "bcn.layers.fused._resample",
            ["bcn/layers/fused/csrc/resample.c"],
            extra_compile_args=["-O3"],
            optional=True,
        ),
    ]
)
