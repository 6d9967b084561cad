# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which headers kernels read: headers.toml, on upstream's real headers and on made ones."""

import ast
import os
import re
from pathlib import Path

import pytest

from kernels.ck_fmha.ckgen.emission import instance_source
from kernels.ck_fmha.ckgen.headers import (
    TABLE,
    HeadersError,
    Section,
    Sections,
    Tree,
    check_source,
    headers_files,
    included,
)
from kernels.ck_fmha.ckgen.pool import Pool, instances_of

SECTIONS = Sections(TABLE.read_text())
OF_ALL = "include/ck_tile/ops/fmha.hpp"
COMBINE = "include/ck_tile/ops/fmha/kernel/fmha_fwd_splitkv_combine_kernel.hpp"


@pytest.fixture(scope="module")
def upstream() -> Path:
    return Path(os.environ["CK_GENERATOR"]).parents[3]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A tree with two pipelines, a and b, and a header that both include."""
    texts = {
        OF_ALL: '#include "ck_tile/ops/fmha/a.hpp"\n#include "ck_tile/ops/fmha/b.hpp"\n',
        "include/ck_tile/ops/fmha/a.hpp": '#if X\n#  include "near.hpp"\n#endif\n#include <hip.h>',
        "include/ck_tile/ops/fmha/near.hpp": '#include "ck_tile/core.hpp"',
        "include/ck_tile/ops/fmha/b.hpp": "#if __has_include(<ck_tile/core.hpp>)\n#endif\n",
        "include/ck_tile/core.hpp": "#pragma once\n",
        "example/ck_tile/01_fmha/fmha.hpp": '#include "ck_tile/ops/fmha.hpp"\n',
    }
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def section(*fmha: str) -> Section:
    return Section(("fmha.hpp",), frozenset(fmha))


def test_the_pool_has_the_sections(whole_pool: Pool):
    """Every section has kernels, and their sources include what it says."""
    used = set()
    for instance in instances_of(whole_pool.candidates):
        name = SECTIONS.of(instance.pipeline)
        used.add(name)
        check_source(instance_source(instance, 64), SECTIONS.by_name[name], instance.name)
    assert used == SECTIONS.by_name.keys()


def test_a_pipeline_has_the_longest_section():
    assert SECTIONS.of("fwd_qr") == "fwd_qr"
    assert SECTIONS.of("fwd_qr_async+alibi+dropout") == "fwd_qr_async"
    assert SECTIONS.of("fwd_splitkv_qr") == "fwd_splitkv"
    assert SECTIONS.of("bwd_dq_dk_dv_kr_ktr_vr_iglp") == "bwd_dq_dk_dv"
    with pytest.raises(HeadersError, match=r"no section for the pipeline fwd_q; it has fwd_qr, .*"):
        SECTIONS.of("fwd_q")


def test_upstreams_headers_by_section(upstream: Path):
    files = headers_files(SECTIONS, {"composable_kernel": upstream})
    read = ast.literal_eval(files.pop("headers.bzl").partition("HEADERS = ")[2])
    assert files.keys() == {f"{name}/ck_tile/ops/fmha.hpp" for name in SECTIONS.by_name}
    every = {f"include/{p}" for p, _ in included((upstream / OF_ALL).read_text(), OF_ALL)}
    for name, trees in read.items():
        headers = trees["composable_kernel"]
        # All that it includes, and no other pipeline's.
        assert (COMBINE in headers) == (name == "fwd_splitkv_combine")
        assert OF_ALL not in headers
        assert not every <= set(headers)
        assert "include/ck_tile/core/config.hpp" in headers
        assert "example/ck_tile/01_fmha/mask.hpp" in headers
        assert headers == sorted(headers)


def test_a_comment_changes_no_list(made: Path):
    """So no package is loaded again, and no compile but of what reads the header."""
    sections = Sections("every.fmha = []\n[a]\nsource = ['fmha.hpp']\nfmha = ['a.hpp']\n")
    before = headers_files(sections, {"made": made})
    header = made / "include/ck_tile/ops/fmha/a.hpp"
    header.write_text(header.read_text() + "\n// A word.\n")
    assert headers_files(sections, {"made": made}) == before


def test_conditions_do_not_matter(made: Path):
    tree = Tree(made)
    example = "example/ck_tile/01_fmha/fmha.hpp"
    folder = "include/ck_tile/ops/fmha"
    core = "include/ck_tile/core.hpp"
    assert tree.read_by(section()) == [example]
    assert tree.read_by(section("a.hpp")) == [
        example,
        core,
        f"{folder}/a.hpp",
        f"{folder}/near.hpp",
    ]
    assert tree.read_by(section("b.hpp")) == [example, core, f"{folder}/b.hpp"]
    assert tree.of_all(section("b.hpp")) == '#pragma once\n#include "ck_tile/ops/fmha/b.hpp"\n'


@pytest.mark.parametrize(
    "line", ["#include HEADER", "# include_next <a.hpp>", "#import <a.hpp>", "__has_include(X)"]
)
def test_a_header_that_is_computed_is_refused(made: Path, line: str):
    (made / "include/ck_tile/core.hpp").write_text(f"{line}\n")
    with pytest.raises(HeadersError, match=rf"core.hpp: '{re.escape(line)}': only #include lines"):
        Tree(made).read_by(section("b.hpp"))


def test_mistakes_are_told(made: Path):
    with pytest.raises(HeadersError, match=r"headers.toml: c.hpp: upstream's .* includes no such"):
        Tree(made).read_by(section("c.hpp"))
    with pytest.raises(HeadersError, match=r"upstream has not all of elsewhere.hpp"):
        Tree(made).read_by(Section(("elsewhere.hpp",), frozenset()))
    with pytest.raises(HeadersError, match=r"x.cpp includes \['b.hpp'\], .* says \['fmha.hpp'\]"):
        check_source('#include "b.hpp"\n', section(), "x.cpp")
    for text in ("[every", "[every]\nfmha = []\n[a]\nsource = []\n"):
        with pytest.raises(HeadersError, match=r"headers.toml cannot be read"):
            Sections(text)


def test_a_patch_of_the_header_of_all_is_refused(made: Path, tmp_path: Path):
    sections = Sections("every.fmha = []\n[a]\nsource = ['fmha.hpp']\nfmha = []\n")
    other = tmp_path / "other"
    for path in [*made.rglob("*.hpp")]:
        copy = other / path.relative_to(made)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())
    (other / OF_ALL).write_text('#include "ck_tile/core.hpp"\n')
    with pytest.raises(HeadersError, match=r"other: a patch changes ck_tile/ops/fmha.hpp"):
        headers_files(sections, {"made": made, "other": other})
