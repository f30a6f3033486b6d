"""The hot loop in C. Where it cannot be compiled, the package installs without it and runs the loop in torch."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "bcn.layers.kernel._pooled",
            ["bcn/layers/kernel/pooled.c"],
            depends=["bcn/layers/kernel/tiles.h"],
            extra_compile_args=["-O3", "-ffp-contract=fast", "-Wno-psabi"],
            optional=True,
        )
    ]
)
