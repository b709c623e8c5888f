"""Reads a session in each format with Python's own readers and compares them.

check_formats.py SCHEMA JSON RAW_CSV DETAILS_CSV
check_formats.py SCHEMA --several JSON CSV...   of several sessions together

Prints what is wrong and exits with 1.
"""
import copy
import csv
import json
import re
import sys

TYPES = {
    "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
    "integer": int, "number": (int, float),
}
ABOUT = {"$schema", "$defs", "title", "description"}
OF_OBJECTS = {"required", "properties"}


def is_type(value, name):
    if isinstance(value, bool) and name != "boolean":
        return False
    return isinstance(value, TYPES[name])


def names(value):
    return value if isinstance(value, list) else [value]


def check(value, schema, root, where="$"):
    """The faults of a value, by the keywords that our schema uses; another one is a fault of the schema."""
    for keyword, rule in schema.items():
        if keyword in ABOUT or keyword in ("additionalProperties",):
            continue
        if keyword in OF_OBJECTS and not isinstance(value, dict):
            continue
        if keyword == "$ref":
            target = root
            for part in rule.split("/")[1:]:
                target = target[part]
            yield from check(value, target, root, where)
        elif keyword == "type":
            if not any(is_type(value, name) for name in names(rule)):
                yield f"{where}: {value!r} is no {rule}"
                return
        elif keyword == "const":
            if value != rule:
                yield f"{where}: {value!r} is not {rule!r}"
        elif keyword == "enum":
            if value not in rule:
                yield f"{where}: {value!r} is none of {rule}"
        elif keyword == "minimum":
            if value < rule:
                yield f"{where}: {value} is too small"
        elif keyword == "pattern":
            if not re.search(rule, value):
                yield f"{where}: {value!r} does not match {rule}"
        elif keyword == "required":
            yield from (f"{where}: no {name}" for name in rule if name not in value)
        elif keyword == "properties":
            for name in value:
                below = rule.get(name, schema.get("additionalProperties", True))
                yield from check_member(value[name], below, root, f"{where}.{name}")
        elif keyword == "items":
            for i, item in enumerate(value):
                yield from check(item, rule, root, f"{where}[{i}]")
        elif keyword == "prefixItems":
            for i, (item, below) in enumerate(zip(value, rule)):
                yield from check(item, below, root, f"{where}[{i}]")
        elif keyword == "minItems":
            if len(value) < rule:
                yield f"{where}: too short"
        elif keyword == "maxItems":
            if len(value) > rule:
                yield f"{where}: too long"
        else:
            yield f"the schema has {keyword}, which is not checked here"
    if "properties" not in schema and "additionalProperties" in schema:
        for name in value:
            yield from check_member(value[name], schema["additionalProperties"], root, f"{where}.{name}")


def check_member(value, schema, root, where):
    if schema is False:
        yield f"{where}: unknown"
    elif schema is not True:
        yield from check(value, schema, root, where)


def spoilt(document):
    """The document with one thing wrong at a time."""
    def changed(change):
        other = copy.deepcopy(document)
        change(other)
        return other

    launch = document["launches"][0]
    assert launch["metrics"] and launch["messages"]
    yield changed(lambda d: d.pop("version"))
    yield changed(lambda d: d.update(version=2))
    yield changed(lambda d: d["session"].update(pid=-1))
    yield changed(lambda d: d["session"].update(pid=True))
    yield changed(lambda d: d["session"].update(complete=None))
    yield changed(lambda d: d["devices"][0].update(compute_capability="nine"))
    yield changed(lambda d: d["devices"][0]["breakdowns"].update(metric="text"))
    yield changed(lambda d: d["launches"][0].update(more=1))
    yield changed(lambda d: d["launches"][0].update(kind="memcpy"))
    yield changed(lambda d: d["launches"][0].update(nvtx={"thread": 1, "ranges": []}))
    yield changed(lambda d: d["launches"][0]["grid"].append(1))
    yield changed(lambda d: d["launches"][0]["metrics"][0].pop("unit"))
    yield changed(lambda d: d["launches"][0]["metrics"][0].update(value=[1]))
    yield changed(lambda d: d["launches"][0]["metrics"][0].update(instances=[["a", "b"]]))
    yield changed(lambda d: d["launches"][0]["messages"][0].update(severity="BAD"))
    yield changed(lambda d: d["launches"][0].update(stack="1"))
    yield changed(lambda d: d["launches"][0]["counts"][0]["metrics"][0]["values"].append(-1))
    yield changed(lambda d: d["launches"][0]["series"][0]["values"].append("nan"))
    yield changed(lambda d: d["stacks"][0]["frames"][0].update(kind="java"))
    yield changed(lambda d: d["codes"][0]["locations"][0].pop("line"))
    yield changed(lambda d: d["codes"][0]["instructions"][0].update(offset=None))
    yield changed(lambda d: d["source_files"][0].update(text=None))


def read_csv(path):
    with open(path, "rb") as file:
        data = file.read()
    if not data.endswith(b"\n") or b"\r\n" in data:
        yield_fault(f"{path}: the last row is not ended")
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        rows = list(csv.reader(file, strict=True))
    for row in rows:
        if len(row) != len(rows[0]):
            yield_fault(f"{path}: {len(row)} fields, not {len(rows[0])}: {row}")
    return rows


FAULTS = []


def yield_fault(text):
    FAULTS.append(text)


def as_cell(cell, metric):
    """Whether a cell of a table has the value of a metric."""
    value = metric["value"]
    if value is None:
        return cell == (metric["why"] if metric["why"] in ("nan", "inf", "-inf") else "n/a")
    if isinstance(value, str):
        return cell == value
    return cell == str(value) if isinstance(value, int) else float(cell) == value


def launch_cells(session, launch):
    size = lambda s: "(%d, %d, %d)" % tuple(s) if launch["kind"] == "kernel" else ""
    return [str(launch["id"]), str(session["pid"]), session["executable"].rsplit("/", 1)[-1], session["host"],
            launch["name"], str(launch["context"]), str(launch["stream"]), size(launch["block"]), size(launch["grid"]),
            str(launch["device"]), launch["compute_capability"]]


def compare_raw(document, rows):
    heads, units, *launches = rows
    if heads[11:] != sorted(heads[11:], key=lambda name: name.encode()):
        yield "raw: columns are not sorted"
    if len(launches) != len(document["launches"]):
        yield f"raw: {len(launches)} launches"
    for row, launch in zip(launches, document["launches"]):
        if row[:11] != launch_cells(document["session"], launch):
            yield f"raw: {row[:11]}"
        metrics = {m["name"]: m for m in launch["metrics"]}
        if not metrics.keys() <= set(heads[11:]):
            yield "raw: a column is missing"
        for name, unit, cell in zip(heads[11:], units[11:], row[11:]):
            metric = metrics.get(name)
            if metric is None and cell:
                yield f"raw: launch {launch['id']} has no {name}, but {cell}"
            elif metric and not as_cell(cell, metric):
                yield f"raw: {name} is {cell}, not {metric}"
            elif metric and metric["value"] is not None and metric["unit"] != unit:
                yield f"raw: {name} is in {unit}, not {metric['unit']}"


def compare_details(document, rows):
    heads, *rest = rows
    column = {name: heads.index(name) for name in heads}
    for launch in document["launches"]:
        mine = [row for row in rest if row[:11] == launch_cells(document["session"], launch)]
        rules = [row for row in mine if row[column["Rule Name"]]]
        said = [[m["rule"], m["severity"], m["text"]] for m in launch["messages"]]
        first = column["Rule Name"]
        if [row[first:first + 3] for row in rules] != said:
            yield f"details: rules of launch {launch['id']}: {rules} not {said}"
        for row, message in zip(rules, launch["messages"]):
            estimate = row[column["Estimated Speedup"]]
            if (float(estimate) if estimate else None) != message["speedup_percent"]:
                yield f"details: estimate {estimate} of {message}"
        metrics = {m["name"]: m for m in launch["metrics"]}
        for row in mine:
            metric = metrics.get(row[column["Metric Name"]])
            if metric and not as_cell(row[column["Metric Value"]], metric):
                yield f"details: {row} is not {metric}"
    if sum(len(l["messages"]) for l in document["launches"]) != sum(1 for row in rest if row[column["Rule Name"]]):
        yield "details: messages of no launch"


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_constant=lambda name: yield_fault(f"{name} is no JSON"))


def several(schema, json_path, csv_paths):
    """One row of headings, and rows of every process of the document and of no other."""
    document = read_json(json_path)
    FAULTS.extend(check(document, schema["$defs"]["sessions"], schema))
    if not list(check(document, schema, schema)):
        yield_fault("several sessions pass as one")
    wanted = {str(one["session"]["pid"]) for one in document["sessions"]}
    if len(wanted) != len(document["sessions"]):
        yield_fault(f"{json_path}: processes {wanted}")
    for path in csv_paths:
        heads, *rows = read_csv(path)
        at = heads.index("Process ID")
        if {row[at] for row in rows} - {""} != wanted:
            yield_fault(f"{path}: not the rows of {wanted}")
        if heads in rows:
            yield_fault(f"{path}: headings among the rows")


def compare_code(document):
    """What launches say of stacks and code, and these of each other."""
    stacks = {s["id"] for s in document["stacks"]}
    codes = {c["id"] for c in document["codes"]}
    if [len(stacks), len(codes)] != [len(document["stacks"]), len(document["codes"])]:
        yield "a stack or code comes twice"
    for launch in document["launches"]:
        if launch.get("stack") not in stacks | {None}:
            yield f"launch {launch['id']} has a stack that there is not"
        for counts in launch.get("counts", []):
            if any(len(m["values"]) != len(counts["offsets"]) for m in counts["metrics"]):
                yield f"launch {launch['id']}: values are not as many as offsets"
    for code in document["codes"]:
        places = len(code["locations"])
        for place in code["locations"]:
            if place["file"] >= len(code["files"]) or place.get("inlined_at", 0) >= places:
                yield f"code {code['id']}: {place}"
        if any(i.get("location", 0) >= places for i in code["instructions"]):
            yield f"code {code['id']}: an instruction is nowhere"


def one(schema, json_path, raw_path, details_path):
    document = read_json(json_path)
    FAULTS.extend(check(document, schema, schema))
    for i, other in enumerate(spoilt(document)):
        if not list(check(other, schema, schema)):
            yield_fault(f"the schema lets spoilt document {i} pass")
    FAULTS.extend(compare_code(document))
    FAULTS.extend(compare_raw(document, read_csv(raw_path)))
    FAULTS.extend(compare_details(document, read_csv(details_path)))


def main():
    schema_path, *paths = sys.argv[1:]
    schema = read_json(schema_path)
    if paths[0] == "--several":
        several(schema, paths[1], paths[2:])
    else:
        one(schema, *paths)
    for fault in FAULTS:
        print(fault)
    sys.exit(1 if FAULTS else 0)


main()
