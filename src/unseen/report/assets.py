"""What a page is made of: templates, scripts and styles, and the rule that nothing else may run. Needs `report`."""

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
from unseen.report.design import thousands

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

MISSING = "reports need the extra 'report': pip install 'unseen[report]'"


def render(template: str, context: Mapping[str, Any]) -> str:
    """A template filled in; every text in the context is escaped."""
    return _environment().get_template(template).render(context)


def raw(text: str) -> Markup:
    """A text of our own that a template takes as it is."""
    from markupsafe import Markup

    return Markup(text)


def text(name: str) -> str:
    """One of our files."""
    return (files("unseen.report") / "templates" / name).read_text(encoding="utf-8")


def scripts(charts: bool) -> list[Markup]:
    """The scripts of a page, the one that runs before the first paint first."""
    return [raw(one) for one in (text("theme.js"), *([_vega()] if charts else []), text("report.js"))]


def policy(charts: bool) -> str:
    """What a browser may do with the page: run these scripts and no other, load nothing from anywhere."""
    digests = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts(charts))
    allowed = " ".join(f"'sha256-{one}'" for one in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def embedded(value: Any) -> Markup:
    """A value as JSON inside a script element: no text in it can end the element or begin another. Numbers that JSON
    does not have are null.

    >>> embedded(float("nan")), embedded("</script>")
    (Markup('null'), Markup('"\\\\u003c/script\\\\u003e"'))
    """
    plain = json.dumps(_known(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    return raw(plain.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _known(value: Any) -> Any:
    """Without NaN and infinities, wherever they are: Altair leaves NaN in columns of text."""
    if isinstance(value, dict):
        return {key: _known(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_known(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's, anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise UsageError(MISSING) from None
    made = Environment(
        loader=PackageLoader("unseen.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"embedded": embedded, "thousands": thousands}
    return made


@cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    try:
        import vl_convert
    except ImportError:
        raise UsageError(MISSING) from None
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return str(bundle).replace("\r", "").replace("</script", "<\\/script")
