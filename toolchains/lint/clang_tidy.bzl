# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""clang_tidy_report: clang-tidy's report on C++ targets, a cached action per source.

The report is a file that is empty where there is nothing to say.
"""

load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

_ReportsInfo = provider(
    doc = "clang-tidy's reports on a target and its dependencies.",
    fields = {"reports": "depset of File"},
)

_EXTENSIONS = ["cc", "cpp"]
_RULES = ["cc_binary", "cc_library", "cc_test"]

# clang-tidy fails where it has something to say; only then has its output a meaning. It names files
# by where the action ran.
_SCRIPT = """
report=$1
shift
: >"$report"
said=$("$@" 2>&1) || printf '%s\\n' "${said//$PWD\\//}" >"$report"
"""

def _compile_flags(ctx, cc_toolchain, context, copts):
    """The flags that Bazel compiles a source of the target with."""
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    variables = cc_common.create_compile_variables(
        cc_toolchain = cc_toolchain,
        feature_configuration = features,
        include_directories = context.includes,
        preprocessor_defines = context.defines,
        quote_include_directories = depset(
            [".", ctx.bin_dir.path],
            transitive = [context.quote_includes],
        ),
        system_include_directories = context.system_includes,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + copts,
    )
    return cc_common.get_memory_inefficient_command_line(
        action_name = ACTION_NAMES.cpp_compile,
        feature_configuration = features,
        variables = variables,
    )

def _expanded(ctx, values):
    """Values of copts or local_defines as the compiler gets them."""
    return [
        ctx.expand_location(value).replace("\\\\\"", "\"").replace("\\\"", "\"")
        for value in values
    ]

def _reports(target, ctx):
    cc_toolchain = find_cc_toolchain(ctx)
    attr = ctx.rule.attr
    own = [target[CcInfo]] if CcInfo in target else []
    context = cc_common.merge_cc_infos(
        cc_infos = own + [dep[CcInfo] for dep in attr.deps if CcInfo in dep],
    ).compilation_context
    flags = _compile_flags(
        ctx,
        cc_toolchain,
        context,
        _expanded(ctx, attr.copts) + ["-D" + d for d in _expanded(ctx, attr.local_defines)],
    )
    (loader,) = [f for f in ctx.files._clang if f.basename == "ld-linux-x86-64.so.2"]
    reports = []
    for source in ctx.rule.files.srcs:
        if source.extension not in _EXTENSIONS or not source.is_source:
            continue
        report = ctx.actions.declare_file("%s.tidy/%s.txt" % (ctx.label.name, source.basename))
        arguments = ctx.actions.args()
        arguments.add_all([
            report,
            loader,
            "--inhibit-cache",
            "--library-path",
            loader.dirname,
            ctx.file._clang_tidy,
        ])
        arguments.add(ctx.file._config, format = "--config-file=%s")
        arguments.add_all(["--quiet", "--warnings-as-errors=*", source, "--"])
        arguments.add_all(flags)
        ctx.actions.run_shell(
            command = _SCRIPT,
            arguments = [arguments],
            inputs = depset(
                [source, ctx.file._clang_tidy, ctx.file._config] + ctx.rule.files.srcs +
                ctx.files._clang,
                transitive = [context.headers, cc_toolchain.all_files],
            ),
            outputs = [report],
            mnemonic = "ClangTidy",
            progress_message = "Analysing %s" % source.short_path,
        )
        reports.append(report)
    return reports

def _clang_tidy_aspect_impl(target, ctx):
    reports = []
    if ctx.rule.kind in _RULES and not ctx.label.workspace_name:
        reports = _reports(target, ctx)
    return [_ReportsInfo(reports = depset(reports, transitive = [
        dep[_ReportsInfo].reports
        for dep in getattr(ctx.rule.attr, "deps", [])
        if _ReportsInfo in dep
    ]))]

_clang_tidy_aspect = aspect(
    implementation = _clang_tidy_aspect_impl,
    attr_aspects = ["deps"],
    attrs = {
        "_clang": attr.label(default = "@llvm//:clang"),
        "_clang_tidy": attr.label(default = "@clang_tidy//:clang_tidy", allow_single_file = True),
        "_config": attr.label(default = "//:.clang-tidy", allow_single_file = True),
    },
    fragments = ["cpp"],
    toolchains = use_cc_toolchain(),
)

def _clang_tidy_report_impl(ctx):
    reports = depset(transitive = [dep[_ReportsInfo].reports for dep in ctx.attr.deps])
    report = ctx.actions.declare_file(ctx.label.name + ".txt")
    arguments = ctx.actions.args()
    arguments.add(report)
    arguments.add_all(reports)
    ctx.actions.run_shell(
        command = "report=$1; shift; cat -- \"$@\" >\"$report\"",
        arguments = [arguments],
        inputs = reports,
        outputs = [report],
        mnemonic = "ClangTidyReport",
    )
    return [DefaultInfo(files = depset([report]), runfiles = ctx.runfiles([report]))]

clang_tidy_report = rule(
    implementation = _clang_tidy_report_impl,
    doc = "What clang-tidy says, by the root's .clang-tidy, of the sources of C++ targets of " +
          "this repository and of what they depend on. It is made even where there are findings.",
    attrs = {
        "deps": attr.label_list(aspects = [_clang_tidy_aspect], mandatory = True),
    },
)
