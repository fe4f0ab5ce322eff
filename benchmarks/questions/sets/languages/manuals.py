"""Manuals with a FAQ. Three are not in English: a German and a French translation, and one in Chinese."""

from __future__ import annotations

from benchmarks.questions.material import Manual
from benchmarks.questions.sources import Repository

GUIDES = (
    "cli",
    "common-props",
    "compatible-style",
    "contributing",
    "customize-theme",
    "getting-started",
    "i18n",
    "introduce",
    "migration-v6",
    "recommendation",
    "server-side-rendering",
    "use-custom-date-library",
    "use-with-farm",
    "use-with-next",
    "use-with-refine",
    "use-with-rsbuild",
    "use-with-umi",
    "use-with-vite",
)
COMPONENTS = (
    "button",
    "cascader",
    "config-provider",
    "date-picker",
    "dropdown",
    "form",
    "input",
    "menu",
    "modal",
    "notification",
    "popover",
    "select",
    "table",
    "tabs",
    "tooltip",
    "tree",
    "upload",
)

MANUALS = {
    manual.repository.name: manual
    for manual in (
        Manual(
            Repository("ant-design/ant-design", "2b258157ff20fb8948780e414dc1d74246aede40", "MIT"),
            ("docs/react/faq.zh-CN.md",),
            (
                *(f"docs/react/{guide}.zh-CN.md" for guide in GUIDES),
                *(f"components/{component}/index.zh-CN.md" for component in COMPONENTS),
            ),
        ),
        Manual(
            Repository("cBioPortal/cbioportal", "58a7a432ad444b3b399d783e20db163622aa4aca", "AGPL-3.0"),
            ("docs/user-guide/faq.md",),
            ("docs/",),
        ),
        Manual(
            Repository("fish-shell/fish-shell", "ff724192d0353341cef6a0a8154b59603d533cd1", "GPL-2.0-only"),
            ("doc_src/faq.rst",),
            ("doc_src/",),
        ),
        Manual(
            Repository("Klipper3d/klipper", "84104bbbd7625d28b4eaaad83f4562972460ecd9", "GPL-3.0"),
            ("docs/FAQ.md",),
            ("docs/",),
        ),
        Manual(
            Repository("kovidgoyal/calibre", "ea9ccaf487197d70a9dc354a547dea6ff2ca29b6", "GPL-3.0"),
            ("manual/faq.rst",),
            ("manual/",),
        ),
        Manual(
            Repository("kovidgoyal/kitty", "9475a58f0bafc1d6efd62c76fad97ff8872b5878", "GPL-3.0"),
            ("docs/faq.rst",),
            ("docs/",),
        ),
        Manual(
            Repository("letsencrypt/website", "b89871ef735cbb447f8d72c86146fcc8e62fc4ab", "MPL-2.0"),
            ("content/de/docs/faq.md",),
            ("content/de/",),
        ),
        Manual(
            Repository("reactjs/fr.reactjs.org", "417f70cae80626b88a000a2d23882e0848a7e2d7", "CC-BY-4.0"),
            ("content/docs/hooks-faq.md",),
            ("content/docs/",),
        ),
    )
}
