"""What of numba is replaced while kernels are compiled, so that it takes two thirds of the time.

numba compiles functions of every kind. Kernels are of one kind: long functions that own nothing,
pasted together from parts. Much of what numba does for others is done for them in vain:

- At each place where `int64 + int64` is written, it looks up what that gives, among definitions for
  arrays, lists, texts and dates. At each access to an array it looks for a way to convert it into
  one, and copies its description to the stack; and it compiles a type to measure its size.
- It clears each variable that goes out of use, in case that it owned something; and to rename one
  that is written to twice, it takes up every statement anew.
- It copies a part that is pasted once for each of its blocks, with all names of the whole part.
- It optimizes three times: each function by itself, then all of them before counts of references
  are pruned, and after. There are none to prune here, and the last time does it all.
- It optimizes the code that unpacks Python objects, which is as long as the kernel itself and runs
  once for thousands of queries.

Kernels are as fast without. All of this is private to numba, so it is replaced, and this file is
imported, in the versions that it was tried with (`jit.py`); others take half as much time again.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numba
from numba.core import codegen, inline_closurecall, ir, ssa
from numba.core.base import BaseContext
from numba.core.lowering import Lower
from numba.core.targetconfig import ConfigStack
from numba.core.types.functions import BaseFunction
from numba.np import arrayobj

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["quick_numba"]

# how the names of functions begin that unpack what Python or C gives to a kernel
_WRAPPERS = ("_ZN7cpython", "cfunc.")

# what numba has looked up: signatures by function, types of arguments and flags; sizes by type
_signatures: dict[Any, Any] = {}
_flags: dict[int, tuple[Any, str]] = {}
_sizes: dict[str, int] = {}


@contextmanager
def quick_numba() -> Iterator[None]:
    """Replace within the block what kernels do not need. numba compiles under a lock."""
    replaced = _replacements()
    before = [vars(owner)[name] for owner, name, _ in replaced]
    for owner, name, made in replaced:
        setattr(owner, name, made)
    try:
        yield
    finally:
        for (owner, name, _), numbas in zip(replaced, before, strict=True):
            setattr(owner, name, numbas)


def _replacements() -> list[tuple[Any, str, Any]]:
    function: Any = BaseFunction
    context: Any = BaseContext
    lower: Any = Lower
    library = codegen.CPUCodeLibrary
    return [
        (function, "get_call_type", _look_up_once(function.get_call_type)),
        (context, "get_function", _deny_conversion(context.get_function)),
        (context, "get_abi_sizeof", _measure_once(context.get_abi_sizeof)),
        (arrayobj, "make_array", _read_in_place(cache(arrayobj.make_array))),
        (lower, "delvar", _leave_unowned(lower.delvar)),
        (inline_closurecall, "copy", SimpleNamespace(deepcopy=_copy)),
        (ssa, "_run_ssa_block_pass", _pass_over_others(ssa._run_ssa_block_pass)),  # noqa: SLF001
        (library, "_optimize_functions", _leave_wrappers),
        (library, "_optimize_final_module", _optimize),
    ]


def _look_up_once(look_up: Callable[..., Any]) -> Callable[..., Any]:
    """Look up the signature of a call once for all places with the same types and flags.

    What it finds is compiled with the flags of the caller, such as those that allow sums in any
    order: so it is the same for the same flags only.
    """

    def remember(function: Any, context: Any, arguments: Any, keywords: Any) -> Any:
        if keywords or not all(isinstance(each, numba.types.Type) for each in arguments):
            # rare, or told apart by a constant
            return look_up(function, context, arguments, keywords)
        call = function, tuple(arguments), _describe_flags()
        if call not in _signatures:
            _signatures[call] = look_up(function, context, arguments, keywords)
        return _signatures[call]

    return remember


def _describe_flags() -> str:
    flags = cast("Any", ConfigStack).top_or_none()
    if id(flags) not in _flags:
        _flags[id(flags)] = flags, repr(flags)  # held, so that no others can have their id
    return _flags[id(flags)][1]


def _deny_conversion(get_function: Callable[..., Any]) -> Callable[..., Any]:
    """Say at once that what is indexed is an array already."""

    def get(context: Any, function: Any, *arguments: Any, **options: Any) -> Any:
        if function == "__array__":
            raise NotImplementedError
        return get_function(context, function, *arguments, **options)

    return get


def _measure_once(measure: Callable[..., int]) -> Callable[..., int]:
    def remember(context: Any, low_level_type: Any) -> int:
        name = str(low_level_type)
        if name not in _sizes:
            _sizes[name] = measure(context, low_level_type)
        return _sizes[name]

    return remember


def _read_in_place(make_array: Callable[..., Any]) -> Callable[..., Any]:
    """Take fields of an array that is read out of its value, without a copy on the stack."""

    def make(array_type: Any) -> Callable[..., Any]:
        def made(context: Any, builder: Any, value: Any = None, ref: Any = None) -> Any:
            if value is None:
                return make_array(array_type)(context, builder, value, ref)
            return _Fields(make_array(array_type), array_type, context, builder, value)

        return made

    return make


class _Fields:
    """The fields of an array's value; for all else, the array as numba makes it."""

    def __init__(self, *given: Any) -> None:
        self._given = given

    def __getattr__(self, name: str) -> Any:
        make_whole, array_type, context, builder, value = self._given
        fields = context.data_model_manager[array_type.as_array]._fields
        if name in fields:
            return builder.extract_value(value, fields.index(name))
        return getattr(make_whole(context, builder, value), name)


def _leave_unowned(delete: Callable[..., None]) -> Callable[..., None]:
    """Leave a variable as it is when it goes out of use, where no references are counted."""

    def leave(lower: Any, name: str) -> None:
        if lower.context.enable_nrt:
            delete(lower, name)
        elif name not in lower._blk_local_varmap:  # noqa: SLF001
            # deleted before it is written to, in the order of the blocks: not local to one of them
            lower._singly_assigned_vars.discard(name)  # noqa: SLF001

    return leave


def _copy(node: Any) -> Any:
    """Copy a block of a part that is pasted: its statements, not the names that they share."""
    if isinstance(node, list | tuple):
        return type(node)(map(_copy, node))
    if isinstance(node, dict):
        return {name: _copy(each) for name, each in node.items()}
    if not isinstance(node, ir.Block | ir.Stmt | ir.Expr):
        return node
    copied = object.__new__(type(node))
    copied.__dict__.update((name, _copy(each)) for name, each in vars(node).items())
    return copied


def _pass_over_others(visit: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """Visit the statements with the variable that is renamed, when there is one; give all."""
    names: dict[
        int, tuple[Any, set[str]]
    ] = {}  # statements are held, so that no others have their id

    def visit_some(states: dict[str, Any], block: Any, handler: Any) -> Iterator[Any]:
        if "varname" not in states:
            yield from visit(states, block, handler)
            return
        for statement in block.body:
            if id(statement) not in names:
                names[id(statement)] = statement, {each.name for each in statement.list_vars()}
            if states["varname"] not in names[id(statement)][1]:
                yield statement
            elif isinstance(statement, ir.Assign):
                yield handler.on_assign(states, statement)
            else:
                yield handler.on_other(states, statement)

    return visit_some


def _leave_wrappers(library: Any, module: Any) -> None:
    """Optimize no function by itself, and those that unpack objects not at all."""
    module.data_layout = library._codegen._data_layout  # noqa: SLF001
    for function in module.functions:
        if not function.is_declaration and function.name.startswith(_WRAPPERS):
            function.add_function_attribute("noinline")
            function.add_function_attribute("optnone")


def _optimize(library: Any) -> None:
    passes, builder = library._codegen._module_pass_manager()  # noqa: SLF001
    passes.run(library._final_module, builder)  # noqa: SLF001
