"""Support for `GridArray`s in other libraries, which is registered when they are imported."""
