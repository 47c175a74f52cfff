#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-only
"""Compare solo's public headers with flux-core's: prototypes, the values of
enumerators and macros, sizes of structs and offsets of their members.

usage: abi.py CC... -- SOLO_INCLUDE... CORE_INCLUDE
"""

import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

HEADERS = ["core", "idset", "hostlist", "jobtap", "shell"]

STRUCTS = {
    "flux_error_t": "text",
    "idset_error_t": "text",
    "struct flux_match": "typemask matchtag topic_glob",
    "struct flux_msg_cred": "userid rolemask",
    "struct flux_handle_ops": "setopt getopt pollfd pollevents send recv"
    " reconnect impl_destroy send_new",
    "struct flux_msg_handler_spec": "typemask topic_glob cb rolemask",
    "struct flux_plugin_handler": "topic cb data",
    "flux_subprocess_ops_t": "on_completion on_state_change on_channel_out"
    " on_stdout on_stderr on_credit",
    "flux_subprocess_hooks_t": "pre_exec pre_exec_arg post_fork post_fork_arg",
    "flux_jobid_t": "",
    "flux_job_state_t": "",
    "flux_job_result_t": "",
    "flux_subprocess_state_t": "",
}


def constants(include):
    """Names of enumerators and of macros without arguments."""
    names = set()
    for path in [p for i in include for p in (pathlib.Path(i) / "flux").rglob("*.h")]:
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        for body in re.findall(r"\benum\b[^{};()]*\{([^}]*)\}", text):
            names.update(re.findall(r"\b((?:FLUX|IDSET)_\w+)\s*[=,\n]", body + "\n"))
        names.update(
            re.findall(r"^#define ((?:FLUX|IDSET|KVS)_\w+)[ \t]+\S", text, flags=re.M)
        )
    skip = {"FLUX_SHELL_PLUGIN_NAME", "FLUX_MSGHANDLER_TABLE_END", "FLUX_DEPRECATED"}
    return sorted(n for n in names - skip if not n.startswith("FLUX_MATCH_"))


def program(names):
    lines = [
        '#define FLUX_SHELL_PLUGIN_NAME "abi"',
        "#include <stddef.h>",
        "#include <limits.h>",
        "#include <stdio.h>",
        *(f"#include <flux/{h}.h>" for h in HEADERS),
        "#define S(x) _Generic ((x), char *: (x), default: NULL)",
        "#define N(x) _Generic ((x), char *: 0, default: (x))",
        "static void show (const char *name, const char *s, long long n)",
        '{ printf ("%s %s %lld\\n", name, s ? s : "", n); }',
        "int main (void) {",
    ]
    lines += [f'show ("{n}", S ({n}), (long long)N ({n}));' for n in names]
    for struct, members in STRUCTS.items():
        lines.append(f'show ("{struct}", 0, sizeof ({struct}));')
        lines += [
            f'show ("{struct}.{m}", 0, offsetof ({struct}, {m}));'
            for m in members.split()
        ]
    return "\n".join(lines + ["return 0; }", ""])


def describe(cc, include, names, tmp):
    source, exe, aux = tmp / "abi.c", tmp / "abi", tmp / "abi.aux"
    cc = [*cc, "-D_GNU_SOURCE", "-w", *(f"-I{path}" for path in include)]
    source.write_text(program(names), encoding="utf-8")
    subprocess.run([*cc, "-o", exe, source], check=True)
    values = subprocess.run([exe], check=True, capture_output=True, text=True).stdout
    subprocess.run(
        [*cc, "-aux-info", aux, "-c", "-o", tmp / "abi.o", source], check=True
    )
    prototypes = set()
    for line in aux.read_text(encoding="utf-8").splitlines():
        line = re.sub(r"^/\*.*?\*/ (extern )?", "", line)
        if re.search(r"\b(flux|idset|hostlist)_\w+ \(", line):
            prototypes.add(line)
    return values.splitlines(), prototypes


def main(args):
    split = args.index("--")
    cc, (*solo, core) = args[:split], args[split + 1 :]
    core = [core]
    solo_names, core_names = constants(solo), constants(core)
    names = [n for n in solo_names if n in core_names]
    with tempfile.TemporaryDirectory() as tmp:
        solo_values, solo_proto = describe(cc, solo, names, pathlib.Path(tmp))
        core_values, core_proto = describe(cc, core, names, pathlib.Path(tmp))
    problems = list(
        difflib.unified_diff(core_values, solo_values, "core", "solo", n=0, lineterm="")
    )
    problems += [f"not in flux-core: {p}" for p in sorted(solo_proto - core_proto)]
    public = re.compile(r"\b(taskmap|optparse|pmi2?|schedutil)_")
    problems += [
        f"not in solo: {p}"
        for p in sorted(core_proto - solo_proto)
        if not public.search(p)
    ]
    problems += [
        f"not in solo: {n}" for n in core_names if n not in names and "SCHED_" not in n
    ]
    print(
        f"# {len(names)} constants, {len(STRUCTS)} types, {len(solo_proto)} prototypes"
    )
    print("\n".join(problems))
    return 1 if problems or len(names) < 100 or len(solo_proto) < 400 else 0


if __name__ == "__main__":
    if "--" not in sys.argv:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
