"""Templates, in which whatever is stored becomes text: escaped, and with everything invisible made visible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from overspill.text.humanize import count_noun, escape_invisible, format_size, one_line, to_datetime

FOLDER = Path(__file__).parent


def show_visibly(value: Any) -> Any:
    """Nothing in a name, an error or a text can turn the direction of what follows, or hide. Applied to everything shown."""
    return escape_invisible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def format_time(milliseconds: int) -> str:
    return to_datetime(milliseconds).strftime("%Y-%m-%d %H:%M:%S")


def format_seconds(milliseconds: int) -> str:
    return f"{milliseconds} ms" if abs(milliseconds) < 1000 else f"{milliseconds / 1000:,.1f} s"


class Showing:
    """Renders pages below one folder of URLs."""

    def __init__(self, root: str) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=show_visibly,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        # Jinja's types know only its own globals and filters.
        known: dict[str, Any] = self._environment.globals
        known["root"] = root
        filters: dict[str, Any] = self._environment.filters
        filters.update(
            time=format_time,
            seconds=format_seconds,
            size=format_size,
            count=count_noun,
            number="{:,}".format,
            line=one_line,
        )

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        return HTMLResponse(self._environment.get_template(template).render(**values), status)
