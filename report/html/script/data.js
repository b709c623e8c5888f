/*
 * Shows the data of one HTML report. Text of the session reaches the page as text nodes alone: nothing here writes
 * markup.
 *
 * The data: tables whose elements name others by number (data.h).
 *   strings   texts; number 0 is ""
 *   metrics   [name, unit, formula, what it is]
 *   sections  [title, blocks]; a block is [kind, ...], of cells [label, metric, group, belongs to charts, unit]
 *   sets      numbers of metrics, in the order of the values of a launch in full
 *   keys      names of the instances of a metric
 *   paths     [push-pop ranges of the launching thread, other ranges]
 *   rules     [rule, section, what it is about]
 *   stacks    frames [function, file, line, is Python, module], the innermost first
 *   codes     {name, files, locations, instructions, ptx}; an instruction is [offset, location, text, line of the PTX]
 *   sessions, launches (the fields below), full (what the page of a launch shows)
 */
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const comparing = page.dataset.mode === "compare";
const text = i => data.strings[i];
