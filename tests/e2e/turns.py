"""turns.py FOLDER NAME LINES...   Runs lines of Python that look at sessions: FOLDER has a JSON file of each, and `checked`
is the NAME of the first."""
import itertools
import json
import sys

folder, checked = sys.argv[1:3]


def launches(name):
    session = json.load(open(f"{folder}/{name}.json"))
    return session.get("sessions", [session])[0]["launches"]


def kernel(name, of):
    return [launch for launch in launches(name) if launch["name"] == of]


def metrics(launch):
    return {m["name"]: m for m in launch["metrics"]}


def values(launch):
    return {m["name"]: m["value"] for m in launch["metrics"] if m.get("value") is not None}


exec("\n".join(sys.argv[3:]))
