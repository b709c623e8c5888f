"""Usage: stacks.py LIBRARY
Compares the stacks that the walker in LIBRARY (walk.c) reads with those that this Python tells of itself, for calls of
all kinds. Prints a line, and every difference; exits with 1 when there is one."""
import asyncio
import contextlib
import ctypes
import functools
import sys
import threading
import types

LIMIT = 64  # KP_PYTHON_FRAMES
TEXT = 1 << 20

# A call through CDLL gives up the interpreter's lock, one through PyDLL keeps it.
libraries = [ctypes.CDLL(sys.argv[1]), ctypes.PyDLL(sys.argv[1])]
for library in libraries:
    library.walk.restype = library.walk_elsewhere.restype = ctypes.c_size_t
    library.walk.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.walk_for.argtypes = [ctypes.c_double]
    library.walk_cost_ns.argtypes = [ctypes.c_size_t, ctypes.c_int]
    library.walk_cost_ns.restype = ctypes.c_double
    library.kp_python_why_not.restype = ctypes.c_char_p

checks = 0
faults = []


def told():
    """The caller's stack as Python tells it, innermost first."""
    frame, stack = sys._getframe(1), []
    while frame and len(stack) < LIMIT:
        code = frame.f_code
        stack.append((getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno or 0))
        frame = frame.f_back
    return [tuple(encoded(part) for part in entry) for entry in stack]


def encoded(part):
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in str(part)).encode()


def check(*_):
    """Leaf of all the calls below; answers 1."""
    global checks
    for library in libraries:
        text = ctypes.create_string_buffer(TEXT)
        n, want = library.walk(text, TEXT), told()
        got = [tuple(line.split(b"\t")) for line in text.value.split(b"\n")[:-1]]
        checks += 1
        if got != want or n != len(want):
            faults.append((got, want))
    return 1


# --- the kinds of calls ---
def through_functions():
    def inner(n):
        return inner(n - 1) if n else check()
    return inner(5)


class Base:
    def method(self):
        return check()

    @classmethod
    def of_class(cls):
        return check()

    @staticmethod
    def static():
        return check()

    @property
    def value(self):
        return check()

    def __call__(self):
        return check()

    def __del__(self):
        check()

    def __enter__(self):
        check()
        return self

    def __exit__(self, *_):
        check()

    def __lt__(self, other):
        return bool(check())


class Derived(Base):
    class_body = check()

    def method(self):
        return super().method()


def through_methods():
    d = Derived()
    d.method(), d.of_class(), d.static(), d.value, d()
    with d:
        check()
    sorted([d, d, d])
    del d


def through_lambdas():
    (lambda: (lambda: check())())()
    sorted([3, 1, 2], key=lambda v: check() * v)
    list(map(lambda v: check(v), [1, 2]))
    functools.reduce(lambda a, b: check(), [1, 2, 3])
    max([1, 2], key=check)


def through_comprehensions():
    [check() for _ in range(2)]
    {check() for _ in range(2)}
    {check(): check() for _ in range(2)}
    any([
        check()
        for _ in range(2)
        if check()
    ])


def generator(n):
    check()
    for _ in range(n):
        yield check()
    yield from generator(n - 1) if n else ()


def through_generators():
    list(generator(2))
    sum(check() for _ in range(2))
    g = generator(1)
    next(g)
    g.close()


async def coroutine(n):
    check()
    await asyncio.sleep(0)
    return check() if not n else await coroutine(n - 1)


async def several():
    await asyncio.gather(coroutine(2), coroutine(0))


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        check()
        return function(*args)
    return wrapper


@decorated
@functools.lru_cache(maxsize=None)
@decorated
def through_decorators(_=None):
    return check()


@contextlib.contextmanager
def manager():
    check()
    yield
    check()


def through_blocks():
    with manager():
        try:
            check()
            raise KeyError
        except KeyError:
            check()
        finally:
            check()
    for _ in range(2):
        if check():
            check(
                check(),
                [
                    check(),
                ],
            )
    while not check():
        pass


def through_c():
    """Python, C, Python again: each entry of the interpreter has frames of its own kind."""
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    numbers = (ctypes.c_int * 4)(4, 3, 2, 1)
    for kind in (ctypes.CDLL, ctypes.PyDLL):
        kind(None).qsort(numbers, 4, ctypes.sizeof(ctypes.c_int), compare(check))
    functools.partial(functools.partial(check, 1), 2)()
    type("Made", (), {"__init__": check})


def through_texts():
    """Names and files of one, two and four bytes a character, and a file name that is no text."""
    for name, file in (("\u00e9t\u00e9", "/\u00fc.py"), ("\u03bb", "/\u4e2d\u6587.py"), ("\U00020000", "/\U0001f600.py"),
                       ("ascii", "/\udcff\udc80.py")):
        scope = {"check": check}
        source = "\n" * 300 + "def %s():\n    return check(\n\n)\n%s()" % (name, name)
        exec(compile(source, file, "exec"), scope)


def through_long_code():
    """A function far longer than one entry of any line table, lines that go back, and code before a first line."""
    body = "".join("    x = %d if x else (x,\n\n\n  x)\n" % i + ("    check()\n" if i % 97 == 0 else "") for i in range(700))
    exec("def long(x=1):\n" + body + "\n" * 5000 + "    check()\nlong()", {"check": check})
    wide = "(" + "+".join(["check()"] * 30) + ")"
    exec("def wide():\n    return " + wide + "\nwide()", {"check": check})


def through_bare_code():
    """Code that stands for no line, or has no line table at all, as code generators make it. CPython
    3.11 crashes on tracing it."""
    code = through_functions.__code__
    if sys.version_info >= (3, 11):
        tables = {"co_linetable": b"\xff" * len(code.co_code)}
    elif sys.version_info >= (3, 10):
        tables = {"co_linetable": b"\xfe\x80" * len(code.co_code)}
    else:
        tables = {"co_lnotab": b""}
    types.FunctionType(code.replace(**tables), globals())()


def through_depth(n=3 * LIMIT):
    """More frames than are kept."""
    return through_depth(n - 1) if n else check()


def through_threads():
    def work():
        for kind in (through_functions, through_methods, through_generators, through_c):
            kind()
    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


kinds = [through_functions, through_methods, through_lambdas, through_comprehensions, through_generators,
         through_decorators, through_blocks, through_c, through_texts, through_long_code, through_depth,
         through_threads, lambda: asyncio.run(several())]


def all_kinds():
    for kind in kinds:
        kind()


def tracer(*_):
    """A debugger or a coverage tool changes the code that runs."""
    return tracer


def ns_at(depth):
    """The cost of a walk of `depth` frames, of functions that call from their thirtieth line."""
    lines = "".join("    x = max(x, %d) if n else [x, n][0]\n" % i for i in range(28))
    scope = {"leaf": lambda: libraries[0].walk_cost_ns(depth, 100000)}
    exec("def deep(n, x=0):\n" + lines + "    return deep(n - 1) if n else leaf()", scope)
    return scope["deep"](depth)


why = libraries[0].walk(ctypes.create_string_buffer(TEXT), TEXT) == 0 and libraries[0].kp_python_why_not()
if why:
    print("%s: no frames: %s" % (sys.version.split()[0], why.decode()))
    sys.exit(0 if hasattr(sys, "gettotalrefcount") else 1)
all_kinds()
through_bare_code()
sys.settrace(tracer)
threading.settrace(tracer)
all_kinds()
sys.settrace(None)
threading.settrace(None)
# A thread that calls Python now and then, as that of a C++ library.
if libraries[0].walk_elsewhere(ctypes.CFUNCTYPE(None)(lambda: all_kinds())) != 0:
    faults.append(("frames of a thread outside Python", "none"))
for got, want in faults[:3]:
    print("got ", got, "\nwant", want)
print("%s: %d stacks, %d differ; 20 frames: %.0f ns" % (sys.version.split()[0], checks, len(faults), ns_at(20)))
if faults:
    sys.exit(1)
# The interpreter ends while a thread is outside it, walking.
threading.Thread(target=libraries[0].walk_for, args=(0.3,), daemon=True).start()
sys.stdout.flush()
