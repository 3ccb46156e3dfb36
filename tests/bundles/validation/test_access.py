from __future__ import annotations

import ast

import pytest
from uncaged_bundles.validation.access import forbidden_access


@pytest.mark.parametrize(
    "source",
    [
        "def run(input, options):\n    return input['prompt']",
        "def f(*vars, **locals): return vars, locals",
        "async def execute(api, input):\n    return await api.ask(input)",
        "f = lambda compile: compile",
        "def f():\n    vars = 1\n    return [vars for x in y]",
        "def f():\n    def g():\n        return input\n    input = 1",
        "names = [input for input in items]",
        "def f():\n    for open in items:\n        open",
        "def f(x):\n    match x:\n        case A(status='x'):\n            pass",
        "if __name__ == 'x': pass",
        "f.__name__; f.__doc__",
        "class A:\n    __slots__ = ('a',)\n    def __getattr__(self, name): return name\n    __hash__ = None",
        "class A(B):\n    def __init__(self):\n        super().__init__()",
        "type(x); isinstance(x, dict); hasattr(x, 'a')",
        "import random\nr = random.Random(options['seed'])\nr.random(); r.choice([1])",
        "import random\ndef f(r: random.Random) -> random.Random: return r",
        "from random import Random\nRandom(seed)",
        "import random\nrandom.Random(x=1)",
        "def f(random):\n    return random.random()",
        "import datetime\ndatetime.datetime.fromtimestamp(0, datetime.timezone.utc)",
        "from datetime import datetime\ndef f(datetime): return datetime.now()",
        "import uuid\nuuid.UUID(int=1); uuid.uuid5(uuid.NAMESPACE_URL, 'x')",
        "import operator\noperator.attrgetter('a.b')",
        "'{a} {0.b}'.format(x); '__class__'.format(); '{}'.format('__class__')",
        "prompt = 'never touch {x.__class__}'",
        "x['__class__']",
        "x.mro; x.sys; x._private",
        "import decimal\ndecimal.getcontext().prec = 5",
        "import json\ndef f(json):\n    json.seen = 1\n    json['x'] = 1",
        "import json\nx.json = json.loads; x[json.dumps] = 1",
    ],
)
def test_ordinary_code_passes(source: str) -> None:
    """The rules refuse what differs or hides, and nothing that bundles are usually made of."""
    assert forbidden_access(ast.parse(source)) is None


@pytest.mark.parametrize(
    ("source", "line", "column", "message"),
    [
        ("x = 1\neval('1')", 2, 0, "'eval' is refused: text is never run as code"),
        ("f = exec", 1, 4, "'exec' is refused"),
        ("compile('', '', 'exec')", 1, 0, "'compile' is refused"),
        ("__import__('os')", 1, 0, "'__import__' is refused: a dynamic import"),
        ("open('x')", 1, 0, "'open' is refused: files are out of a bundle's reach"),
        ("input()", 1, 0, "'input' is refused: yield an 'ask' effect"),
        ("breakpoint()", 1, 0, "'breakpoint' is refused"),
        ("getattr(x, 'a')", 1, 0, "'getattr' is refused: an attribute is written out"),
        ("setattr(x, 'a', 1)", 1, 0, "'setattr' is refused"),
        (
            "import json\njson.seen = 1",
            2,
            0,
            "json.seen is not the bundle's to change: all threads of a bundle share the standard library",
        ),
        (
            "import json\njson.JSONEncoder.x += 1",
            2,
            0,
            "json.JSONEncoder.x is not the bundle's to change",
        ),
        (
            "from json import JSONEncoder as E\ndel E.default",
            2,
            4,
            "json.JSONEncoder.default is not the bundle's to change",
        ),
        ("import string\nfor string.x in y: pass", 2, 4, "string.x is not the bundle's to change"),
        (
            "import calendar\ncalendar.month_name[1] = 'x'",
            2,
            0,
            "calendar.month_name is not the bundle's to change",
        ),
        ("delattr(x, 'a')", 1, 0, "'delattr' is refused"),
        ("vars()", 1, 0, "'vars' is refused: use a dict of your own"),
        ("globals()['x']", 1, 0, "'globals' is refused"),
        ("locals()", 1, 0, "'locals' is refused"),
        ("\N{FULLWIDTH LATIN SMALL LETTER E}val('1')", 1, 0, "'eval' is refused"),
        ("().__class__", 1, 0, "access to '__class__' is refused"),
        ("x.__dict__ = {}", 1, 0, "access to '__dict__'"),
        ("del x.__dict__", 1, 4, "access to '__dict__'"),
        ("x.a.__globals__.b", 1, 0, "access to '__globals__'"),
        ("__builtins__", 1, 0, "access to '__builtins__'"),
        ("__file__", 1, 0, "access to '__file__'"),
        ("f'{x.__class__}'", 1, 3, "access to '__class__'"),
        ("super().__getattribute__('x')", 1, 0, "access to '__getattribute__'"),
        ("A.__init__(self)", 1, 0, "access to '__init__'"),
        ("match x:\n    case object(__class__=c): pass", 2, 9, "access to '__class__'"),
        ("g.gi_frame.f_back", 1, 0, "frames, tracebacks and code objects"),
        ("e.tb_frame", 1, 0, "frames, tracebacks and code objects"),
        ("c.cr_frame", 1, 0, "frames, tracebacks and code objects"),
        ("'{0.__class__}'.format(x)", 1, 0, "a format field with a dunder name"),
        ("'{0[__class__]}'.format_map(x)", 1, 0, "a format field with a dunder name"),
        ("f.vformat('{x.__init__}', (), {})", 1, 10, "a format field with a dunder name"),
        ("str.format('{0.__class__}', x)", 1, 11, "a format field with a dunder name"),
        ("import operator\noperator.attrgetter('a.__class__')(x)", 2, 20, "access to '__class__'"),
        ("from operator import methodcaller as m\nm('__reduce__')", 2, 2, "access to '__reduce__'"),
        ("import random\nrandom.random()", 2, 0, "'random.random' is refused"),
        ("import random\nrandom.seed(1)", 2, 0, "'random.seed' is refused"),
        ("import random as r\nr.choice([])", 2, 0, "'random.choice' is refused"),
        ("import random\nx = random", 2, 4, "random may not be used as a value"),
        ("import random\nf(random)", 2, 2, "random may not be used as a value"),
        (
            "def f():\n    import random\n    random.shuffle([])",
            3,
            4,
            "'random.shuffle' is refused",
        ),
        ("import random\nrandom.Random()", 2, 0, "random.Random without a seed"),
        ("from random import Random\nRandom(None)", 2, 0, "random.Random without a seed"),
        ("import random\nrandom.Random(x=None)", 2, 0, "random.Random without a seed"),
        ("import uuid\nuuid.uuid4()", 2, 0, "'uuid.uuid4' is refused"),
        ("import uuid\nuuid.uuid1()", 2, 0, "'uuid.uuid1' is refused"),
        (
            "import datetime as d\nd.datetime.now()",
            2,
            0,
            "'datetime.datetime.now' is refused: take the time from options",
        ),
        ("from datetime import date\ndate.today()", 2, 0, "'datetime.date.today' is refused"),
        ("import types\ntypes.FunctionType", 2, 0, "'types.FunctionType' is refused"),
        (
            "import dataclasses\ndataclasses.sys.modules",
            2,
            0,
            "'dataclasses.sys' is refused: it is no public part",
        ),
        ("import random\nrandom._os", 2, 0, "'random._os' is refused"),
        ("import re\nre._compiler", 2, 0, "'re._compiler' is refused"),
    ],
)
def test_what_reaches_further_is_refused_at_its_place(
    source: str, line: int, column: int, message: str
) -> None:
    """Evaluation of text, the interpreter's insides and chance without a seed have no place in a
    bundle.
    """
    finding = forbidden_access(ast.parse(source))
    assert finding is not None
    assert (finding.line, finding.column) == (line, column)
    assert message in finding.message


@pytest.mark.parametrize(
    "source",
    [
        "if never:\n    eval = None\neval('1')",  # a module's binding may never happen
        # a class's names are not its methods'
        "class A:\n    open = 1\n    def f(self):\n        return open('x')",
        "def f():\n    global eval\n    eval = 1\n    eval('1')",
        "def f():\n    eval = 1\n    del eval\n    eval('1')",
        "def f():\n    try:\n        x\n    except E as eval:\n        pass\n    eval('1')",
        "def f(a=open('x')):\n    open = 1",  # a default is evaluated outside
        "@open\ndef f(open): pass",
        "def f() -> open:\n    open = 1",
        "x = [open for open in open('x')]",
        "def f():\n    [open for open in y]\n    open('x')",
        "def f():\n    def g():\n        open = 1\n    open('x')",
        "async def f():\n    open('x')",
        "(x for y in z if open(y))",
        "{open(k): v for k, v in y}",
        "lambda x=open: x",
    ],
)
def test_only_a_binding_that_is_certain_shadows_a_refused_name(source: str) -> None:
    """A function's own names are certain; everything that could fall through to the builtin is
    not.
    """
    assert forbidden_access(ast.parse(source)) is not None


def test_the_first_in_the_file_is_told() -> None:
    """Position decides, not the order in which a tree is walked."""
    finding = forbidden_access(ast.parse("f(x.__class__, eval)\nopen"))
    assert finding is not None
    assert "'__class__'" in finding.message
