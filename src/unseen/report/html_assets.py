"""Templates, scripts and styles of pages, and the policy that no other script may run. Needs the extra `report`."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from unseen.errors import UsageError
from unseen.report.sections.design import format_count

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

MISSING_EXTRA = "reports need the extra 'report': pip install 'unseen[report]'"


def render(template: str, context: Mapping[str, Any]) -> str:
    """Fill in a template; every text in the context is escaped."""
    return _environment().get_template(template).render(context)


def raw(text: str) -> Markup:
    """Mark a text of this package as safe, so that templates do not escape it."""
    from markupsafe import Markup

    return Markup(text)


def text(name: str) -> str:
    """The text of a file in `templates`."""
    return (files("unseen.report") / "templates" / name).read_text(encoding="utf-8")


def scripts(charts: bool) -> list[Markup]:
    """The scripts of a page; the first one runs before the first paint."""
    sources = [text("theme.js"), _vega(), text("report.js")] if charts else [text("theme.js"), text("report.js")]
    return list(map(raw, sources))


def policy(charts: bool) -> str:
    """The content security policy of a page: run these scripts and no others, load nothing from anywhere."""
    digests = []
    for script in scripts(charts):
        digest = hashlib.sha256(script.encode()).digest()
        digests.append(f"'sha256-{base64.b64encode(digest).decode()}'")
    allowed = " ".join(digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def embed_json(value: Any) -> Markup:
    """A value as JSON for a script element; numbers that JSON does not have become null.

    The characters <, > and & are escaped, so that no text can end the element or begin another.

    >>> embed_json(float("nan")), embed_json("</script>")
    (Markup('null'), Markup('"\\\\u003c/script\\\\u003e"'))
    """
    plain = json.dumps(
        _replace_nonfinite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
    )
    return raw(plain.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _replace_nonfinite(value: Any) -> Any:
    """The value with None for NaN and infinities at any depth: Altair leaves NaN in columns of text."""
    if isinstance(value, dict):
        return {key: _replace_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_nonfinite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's, anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise UsageError(MISSING_EXTRA) from None
    environment = Environment(
        loader=PackageLoader("unseen.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"embedded": embed_json, "thousands": format_count}
    return environment


@cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    try:
        import vl_convert
    except ImportError:
        raise UsageError(MISSING_EXTRA) from None
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return str(bundle).replace("\r", "").replace("</script", "<\\/script")
