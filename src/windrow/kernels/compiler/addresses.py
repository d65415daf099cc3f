"""Memory and functions named by plain addresses, which, unlike arrays, cost compiled code nothing to pass on."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types as untyped_types

from windrow.kernels.compiler.jit import kernel
from windrow.kernels.compiler.vectors import cgutils, step

types: Any = untyped_types  # mypy would not let typed code call it


@step
def call(typing: Any, address: Any, arguments: Any) -> Any:
    """Call the function at an address with whole numbers; the whole number that it gives, if it gives one."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = ir.IntType(64)
        given = [builder.extract_value(args[1], k) for k in range(len(signature.args[1]))]
        kind = ir.PointerType(ir.FunctionType(whole, [whole] * len(given)))
        return builder.call(builder.inttoptr(args[0], kind), given)

    return types.int64(types.int64, types.UniTuple(types.int64, len(arguments))), generate


@step
def copy_bytes(typing: Any, to: Any, origin: Any, count: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        target, source = (builder.inttoptr(value, byte) for value in args[:2])
        cgutils.raw_memcpy(builder, target, source, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@step
def zero_bytes(typing: Any, to: Any, count: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        cgutils.memset(builder, builder.inttoptr(args[0], ir.IntType(8).as_pointer()), args[1], 0)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@kernel
def run_at(address: int, arguments: Any) -> Any:
    """As ``call``, from Python."""
    return call(address, arguments)
