"""Manuals with a FAQ: of programs, devices, an operating system and a trading bot. One is a Portuguese translation."""

from __future__ import annotations

from benchmarks.questions.material import Manual
from benchmarks.questions.sources import Repository

MANUALS = {
    manual.repository.name: manual
    for manual in (
        Manual(
            Repository("esphome/esphome-docs", "bac5e2ab8268293ebe4972a5be562414e0556a96", "CC-BY-NC-SA-4.0"),
            ("guides/faq.rst",),
            (
                "automations/",
                *(
                    f"components/{part}/"
                    for part in ("binary_sensor", "climate", "cover", "display", "light", "output", "switch")
                ),
                "cookbook/",
                "guides/",
                "web-api/",
            ),
        ),
        Manual(
            Repository("freqtrade/freqtrade", "c9ae5e1e9ff25bb55dd61f5e5519f7c479291edb", "GPL-3.0"),
            ("docs/faq.md",),
            ("docs/",),
        ),
        Manual(
            Repository("laurent22/joplin", "db966f919ea51f5f32fa454a10c7a64957a4e9de", "AGPL-3.0-or-later"),
            ("readme/faq.md",),
            tuple(f"readme/{part}/" for part in ("api", "apps", "dev", "news", "welcome")),
        ),
        Manual(
            Repository("numba/numba", "5340f052d01403b12480fa19e596200ee0d0e131", "BSD-2-Clause"),
            ("docs/source/user/faq.rst",),
            tuple(f"docs/source/{part}/" for part in ("cuda", "developer", "extending", "reference", "user")),
        ),
        Manual(
            Repository("qmk/qmk_firmware", "3f26a9232a2696a99fec54239a7e177da53a5105", "GPL-2.0"),
            tuple(f"docs/faq_{part}.md" for part in ("build", "debug", "general", "keymap", "misc")),
            ("docs/",),
        ),
        Manual(
            Repository("QubesOS/qubes-doc", "311cd6538dd9b6d06b0723752304646ce0684acd", "not stated"),
            ("introduction/faq.rst",),
            ("developer/", "introduction/", "project-security/", "user/"),
        ),
        Manual(
            Repository("snakemake/snakemake", "ead894bdc35aaf0d56238dc273645b49b43622cf", "MIT"),
            ("docs/project_info/faq.rst",),
            ("docs/",),
        ),
        Manual(
            Repository("vuejs-translations/docs-pt", "782d14bbeb375e1877f02a0562e7d89644b89021", "CC-BY-4.0"),
            ("src/about/faq.md", "src/guide/extras/composition-api-faq.md"),
            ("src/",),
        ),
        Manual(
            Repository("wez/wezterm", "ee0c04e735fb94cb5119681f704fb7fa6731e713", "MIT"),
            ("docs/faq.md",),
            ("docs/",),
        ),
    )
}
