"""Hostile CSV and Parquet files, and files of the UCI data sets."""

import os
import pickle
from pathlib import Path

import numpy as np

from sysid.data import load
from targets import datasets
from tests.hostile.texts.cases import Case, special

GOOD = b"t,x\n0,1\n1,2\n"
AT = (r"a\.csv", r"line \d+")
MANY = b"t,x\n" + b"0,1\n" * 3


def table(content, name="a.csv", **options):
    """A call of ``load`` on a file with these bytes."""

    def call(folder):
        path = folder / name
        path.write_bytes(content)
        return load(path, time="t", **options)

    return call


def read_table(path):
    """``load``."""
    return load(path, time="t")


def values(*expected):
    """Whether a series has these values."""
    return lambda series: np.array_equal(series.values[:, 0], expected, equal_nan=True)


CSV = [
    *[
        Case(f"csv: {name}", table(content), says=AT)
        for name, content in {
            "a field of 200,000": b't,x\n0,1\n1,"' + b"a" * 200_000 + b'"\n',
            "a header of 200,000": b't,"' + b"x" * 200_000 + b'"\n0,1\n',
            "300,000 columns": b"t" + b",x" * 300_000 + b"\n",
            "200,000 spaces and a word": MANY + b"1," + b" " * 200_000 + b"z\n",
            "200,000 spaces in a line": MANY + b" " * 200_000 + b"\n1,2\n",
            "spaces in 2,000 fields": b"t"
            + b"".join(b",x%d" % k for k in range(2000))
            + b"\n"
            + b"0"
            + b",    z" * 2000
            + b"\n",
            "a NUL": b"t,x\n0,1\n1,\x002\n",
            "NULs": b"\0" * 10**6,
            "a NUL in the header": b"t,x\0\n0,1\n",
            "no UTF-8": b"t,x\n0,1\n\xff,2\n",
            "Latin": "t,é\n0,1\n1,2\n".encode("latin-1"),
            "UTF-16": GOOD.decode().encode("utf-16"),
            "UTF-16 without a mark": GOOD.decode().encode("utf-16-le"),
            "UTF-32": GOOD.decode().encode("utf-32"),
            "half a letter": b"t,x\n0,1\n1,\xc3",
            "a surrogate": b"t,x\n0,\xed\xa0\x80\n",
            "no end of a line": b"a" * 20_000_000,
            "no end of a row": b"t,x\n" + b"1," * 10_000_000,
            "an open quote": b't,x\n0,1\n1,"2\n2,3\n',
            "an open quote that swallows rows": b't,x\n0,1\n1,2\n2,"\n3,4\n4,5\n',
            "an open quote before 10 MB": b't,x\n0,"1\n' + b"1,2\n" * 2_500_000,
            "3,000,000 quotes": b"t,x\n" + b'"\n' * 3_000_000,
            "an open quote in the header": b't,"x\n0,1\n1,2\n',
            "a field with two quotes": b't,x\n0,1\n1,"2" "3"\n',
            "long": b"t,x\n0,1\n1,2,3\n",
            "short": b"t,x\n0,1\n1\n",
            "blank": b"t,x\n0,1\n\n1,2\n",
            "one long, one short": b"t,x\n0,1,2\n1\n",
            "10,000,000 blank lines": b"t,x\n" + b"\n" * 10_000_000 + b"0,1\n",
            "1,000,000 comments": b"#\n" * 1_000_000,
            "no names": b"0,1\n1,2\n",
            "one column": b"t\n0\n1\n",
            "a word": b"t,x\n0,1\n1,two\n",
            "an underscore": b"t,x\n0,1_0\n1,2\n",
            "hexadecimal": b"t,x\n0,0x10\n1,2\n",
            "digits of another script": "t,x\n0,1\n1,\u0663\n".encode(),
            "wide digits": "t,x\n0,1\n1,\uff13\n".encode(),
            "nan with a payload": b"t,x\n0,1\n1,nan(12)\n",
            "a complex number": b"t,x\n0,1\n1,2j\n",
            "Fortran": b"t,x\n0,1\n1,1d5\n",
            "a decimal comma": b"t;x\n0;1,5\n1;2\n",
            "a decimal comma of 10^5": b"t;x\n0;1," + b"5" * 100_000 + b"\n1;2\n",
            "a sign apart": b"t,x\n0,1\n1,- 2\n",
            "a vertical tab for a line": b"t,x\n0,1\x0b1,2\n2,3\n",
            "a time of nan": b"t,x\n0,1\nnan,2\n",
            "a time of inf": b"t,x\n0,1\ninf,2\n",
            "no time": b"t,x\n0,1\n,2\n",
            "a time of 1e400": b"t,x\n0,1\n1e400,2\n",
            "a value of 1e400": b"t,x\n0,1\n1,1e400\n",
            "a value of 10^6 digits": b"t,x\n0,1\n1," + b"9" * 10**6 + b"\n",
            "equal times": b"t,x\n0,1\n0,2\n",
            "the fault after a field of lines": b't,x,n\n0,1,"a\nb\nc"\n1,two,d\n',
        }.items()
    ],
    Case(
        "csv: the line after a field of lines",
        table(b't,x,n\n0,1,"a\nb\nc"\n1,two,d\n', states=["x"]),
        says=(r"a\.csv, line 5, column 'x'",),
    ),
    Case(
        "csv: the time after a field of lines",
        table(b't,x,n\n0,1,"a\nb\nc"\ninf,2,d\n', states=["x"]),
        says=(r"a\.csv, line 5, column 't'",),
    ),
    Case("csv: empty", table(b""), says=(r"a\.csv", "names the columns")),
    Case("csv: blank lines alone", table(b"\n\n\n"), says=(r"a\.csv", "line 1")),
    Case("csv: names alone", table(b"t,x\n"), says=(r"a\.csv", "got 0")),
    Case("csv: a name twice", table(b"t,x,x\n0,1,2\n"), says=(r"a\.csv", "'x' at 3")),
    Case(
        "csv: no such column among 15,000",
        table(b"s" + b"".join(b",x%d" % k for k in range(15_000)) + b"\n0\n"),
        says=(r"a\.csv", "no column 't'"),
    ),
    Case("csv: a name without letters", table(b"t,,x\n0,1,2\n1,2,3\n"), says=("states|columns",)),
    Case("csv: no column for a state", table(GOOD, states=["y"]), says=(r"a\.csv", "'y'")),
    *[
        Case(f"csv: {kind}", special(kind, read_table, "a.csv"), says=("path", "regular file"))
        for kind in ("fifo", "folder", "/dev/zero", "/dev/random")
    ],
    Case("csv: sparse", special("sparse", read_table, "a.csv"), says=(r"a\.csv", "line 1, column 1")),
    Case("csv: nowhere", special("/nowhere/a.csv", read_table, ""), (FileNotFoundError,), ("path", r"a\.csv")),
    Case("csv: NUL in the path", special("/tmp/a\0b", read_table, ""), (FileNotFoundError, ValueError), ("path",)),
    Case("csv: bytes", lambda folder: load(b"a.csv", time="t"), (TypeError,), ("path",)),
    Case("csv: an object", lambda folder: load(GOOD, time="t"), (TypeError,), ("path",)),
    Case("csv: old lines", table(GOOD.replace(b"\n", b"\r")), holds=values(1.0, 2.0)),
    Case("csv: mixed lines", table(b"t,x\r0,1\r\n1,2\n2,3\r"), holds=values(1.0, 2.0, 3.0)),
    Case("csv: a mark first", table(b"\xef\xbb\xbf" + GOOD), holds=values(1.0, 2.0)),
    Case(
        "csv: 200,000 spaces for a value", table(GOOD + b"2," + b" " * 200_000 + b"\n"), holds=values(1.0, 2.0, np.nan)
    ),
    Case("csv: 200,000 spaces before one", table(GOOD + b"2," + b" " * 200_000 + b"3\n"), holds=values(1.0, 2.0, 3.0)),
    Case("csv: rows within a quote", table(b't,x,n\n0,1,"a\n1,2,b"\n1,3,c\n', states=["x"]), holds=values(1.0, 3.0)),
    Case(
        "csv: 15,000 columns",
        table(
            b"t"
            + b"".join(b",x%d" % k for k in range(15_000))
            + b"\n"
            + b"\n".join(b",".join([b"%d" % k] * 15_001) for k in range(3))
        ),
        holds=values(0.0, 1.0, 2.0),
    ),
]


class Runs:
    """What leaves a file when it is unpickled."""

    def __reduce__(self):
        """Run a command."""
        return os.system, ("touch ran",)


def parquet(make, columns=None):
    """A call of ``load`` on the Parquet file of ``make(pyarrow)``, a table; or of bytes."""

    def call(folder):
        import pyarrow
        from pyarrow import parquet as files

        path = folder / "a.parquet"
        made = make(pyarrow)
        if isinstance(made, bytes):
            path.write_bytes(made)
        else:
            files.write_table(made, path)
        here = Path.cwd()
        os.chdir(folder)  # where ``Runs`` would leave its file
        try:
            return load(path, time="t", states=columns)
        finally:
            os.chdir(here)

    return call


def with_extension(pyarrow, name, content):
    """A table with a column of an extension type that is read from ``content``."""
    field = pyarrow.field(
        "x", pyarrow.float64(), metadata={b"ARROW:extension:name": name, b"ARROW:extension:metadata": content}
    )
    schema = pyarrow.schema([pyarrow.field("t", pyarrow.float64()), field])
    return pyarrow.table([[0.0, 1.0], [1.0, 2.0]], schema=schema)


def good_bytes(pyarrow, rows=200):
    """A good file."""
    from pyarrow import parquet as files

    sink = pyarrow.BufferOutputStream()
    files.write_table(pyarrow.table({"t": np.arange(float(rows)), "x": np.sin(np.arange(rows))}), sink)
    return sink.getvalue().to_pybytes()


def flipped(seed):
    """A good file with 1 % of the bytes of its metadata changed."""

    def make(pyarrow):
        content = bytearray(good_bytes(pyarrow))
        rng = np.random.default_rng(seed)
        size = int.from_bytes(content[-8:-4], "little")
        for place in rng.integers(len(content) - size - 8, len(content) - 8, max(size // 100, 1)):
            content[place] ^= int(rng.integers(1, 256))
        return bytes(content)

    return make


def equal_times(pyarrow):
    """A small file of many rows, all alike."""
    return pyarrow.table({"t": np.zeros(1_000_000), "x": np.zeros(1_000_000)})


IN = (r"a\.parquet",)
PARQUET = [
    *[
        Case(f"parquet: {name}", parquet(make), says=(r"a\.parquet", "column 'x'"))
        for name, make in {
            "texts": lambda pa: pa.table({"t": [0.0, 1.0], "x": ["a", "b"]}),
            "lists": lambda pa: pa.table({"t": [0.0, 1.0], "x": [[1.0], [2.0]]}),
            "structs": lambda pa: pa.table({"t": [0.0, 1.0], "x": [{"a": 1.0}, {"a": 2.0}]}),
            "decimals": lambda pa: pa.table({"t": [0.0, 1.0], "x": pa.array([1, 2], pa.decimal128(30, 2))}),
            "dates": lambda pa: pa.table({"t": [0.0, 1.0], "x": pa.array([1, 2], pa.timestamp("ns"))}),
            "truths": lambda pa: pa.table({"t": [0.0, 1.0], "x": [True, False]}),
            "pickles": lambda pa: pa.table({"t": [0.0, 1.0], "x": [pickle.dumps(Runs())] * 2}),
            "integers beyond 2**53": lambda pa: pa.table({"t": [0.0, 1.0], "x": [2**62 + 1, 3]}),
            "words for numbers": lambda pa: pa.table({"t": [0.0, 1.0], "x": pa.array(["1", "1"]).dictionary_encode()}),
        }.items()
    ],
    *[
        Case(f"parquet: {name}", parquet(lambda pa, c=content: c), says=IN)
        for name, content in {
            "empty": b"",
            "text": b"t,x\n0,1\n",
            "PAR1": b"PAR1",
            "PAR1 twice": b"PAR1PAR1",
            "a length of 4 GB": b"PAR1" + b"\xff" * 4 + b"PAR1",
            "a length below 0": b"PAR1\0\0\0\x80PAR1",
            "encrypted": b"PARE" + b"\0" * 100 + b"\x10\0\0\0PARE",
            "zeros": b"PAR1" + b"\0" * 1000 + b"\x10\0\0\0PAR1",
            "compact noise": b"PAR1" + b"\x19" * 5000 + b"\x88\x13\0\0PAR1",
        }.items()
    ],
    Case("parquet: lists 60 deep", parquet(lambda pa: pa.table({"t": [0.0], "x": pa.nulls(1, deep(pa, 60))})), says=IN),
    Case("parquet: cut", parquet(lambda pa: good_bytes(pa)[:-20]), says=IN),
    Case("parquet: without its beginning", parquet(lambda pa: b"PAR1" + good_bytes(pa)[400:]), says=IN),
    Case("parquet: a name twice", parquet(lambda pa: pa.table([[0.0], [1.0], [2.0]], ["t", "x", "x"])), says=IN),
    Case(
        "parquet: no rows",
        parquet(lambda pa: pa.table({"t": pa.array([], pa.float64()), "x": pa.array([], pa.float64())})),
        says=IN,
    ),
    Case(
        "parquet: a time of null",
        parquet(lambda pa: pa.table({"t": [0.0, None], "x": [1.0, 2.0]})),
        says=(r"a\.parquet, row 1, column 't'",),
    ),
    Case("parquet: 1,000,000 equal times", parquet(equal_times), says=(r"a\.parquet", "row 1")),
    *[
        Case(f"parquet: {kind}", special(kind, read_table, "a.parquet"), says=("path", "regular file"))
        for kind in ("fifo", "folder")
    ],
    Case("parquet: sparse", special("sparse", read_table, "a.parquet"), says=IN),
    *[
        Case(
            f"parquet: extension {name}",
            parquet(lambda pa, n=name: with_extension(pa, n.encode(), pickle.dumps(Runs()))),
            holds=values(1.0, 2.0),
        )
        for name in ("arrow.py_extension_type", "mine.unknown")
    ],
    *[Case(f"parquet: changed metadata {seed}", parquet(flipped(seed)), (ValueError,), IN) for seed in range(12)],
]


def deep(pyarrow, n):
    """A type of lists in lists."""
    kind = pyarrow.float64()
    for _ in range(n):
        kind = pyarrow.list_(kind)
    return kind


def data_set(content, read=datasets.heart):
    """A call of ``heart`` on a file with these bytes."""

    def call(folder):
        path = folder / "heart.dat"
        path.write_bytes(content)
        return read(path)

    return call


ROW = b"0 " * 13 + b"1\n"
IN_ROW = (r"heart\.dat", r"line \d+, column \d+")
DATASETS = [
    *[
        Case(f"datasets: {name}", data_set(content), says=IN_ROW)
        for name, content in {
            "a word": ROW + b"zero " + ROW[2:],
            "nan": b"nan " + ROW[2:],
            "inf": b"inf " + ROW[2:],
            "1e400": b"1e400 " + ROW[2:],
            "an underscore": b"1_0 " + ROW[2:],
            "digits of another script": "\u0661 ".encode() + ROW[2:],
            "wide digits": "\uff11 ".encode() + ROW[2:],
            "hexadecimal": b"0x1 " + ROW[2:],
            "class 3": ROW[:-2] + b"3\n",
            "a NUL": ROW + b"0\0 " + ROW[2:],
            "no UTF-8": ROW + b"\xff " + ROW[2:],
            "UTF-16": ROW.decode().encode("utf-16"),
            "UTF-16 without a mark": ROW.decode().encode("utf-16-le"),
            "a million digits": b"9" * 10**6 + b" " + ROW[2:],
            "a word of a million letters": b"a" * 10**6 + b" " + ROW[2:],
        }.items()
    ],
    *[
        Case(f"datasets: {name}", data_set(content), says=(r"heart\.dat", "line"))
        for name, content in {
            "13 columns": ROW + ROW[2:],
            "400,000 columns": b"0 " * 400_000,
            "commas": b"0," * 13 + b"1\n",
            "blank": ROW + b"\n" + ROW,
            "a form feed for a line": ROW[:-1] + b"\x0c" + ROW,
            "spaces": b" " * 10**6 + b"0",
            "a line separator for a line": ROW[:-1] + "\u2028".encode() + ROW,
        }.items()
    ],
    Case("datasets: empty", data_set(b""), says=(r"heart\.dat", "empty")),
    Case("datasets: two rows", data_set(ROW * 2), says=(r"heart\.dat", "2 rows")),
    Case("datasets: 30,000 rows", data_set(ROW * 30_000), says=(r"heart\.dat", "30000 rows")),
    Case("datasets: 5 MB", data_set(b"0" * 5_000_000), says=("path", "1048576 bytes")),
    Case("datasets: sparse", special("sparse", datasets.german, "heart.dat"), says=("path", "1048576 bytes")),
    *[
        Case(f"datasets: {kind}", special(kind, datasets.heart, "heart.dat"), says=("path", "regular file"))
        for kind in ("fifo", "folder", "/dev/zero")
    ],
    Case(
        "datasets: nowhere", special("/nowhere/heart.dat", datasets.heart, ""), (FileNotFoundError,), (r"heart\.dat",)
    ),
    Case("datasets: bytes", lambda folder: datasets.heart(b"heart.dat"), (TypeError,), ("path",)),
    Case("datasets: mushroom of a word", data_set(b"e," + b"x," * 21 + b"long\n", datasets.mushroom), says=IN_ROW),
    Case(
        "datasets: mushroom of a million letters",
        data_set(b"e," + b"x" * 10**6 + b",x" * 21 + b"\n", datasets.mushroom),
        says=IN_ROW,
    ),
    Case("datasets: mushroom of NULs", data_set(b"\0" * 1000, datasets.mushroom), says=IN_ROW),
]
CASES = CSV + PARQUET + DATASETS
