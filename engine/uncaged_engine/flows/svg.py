"""Drawing of a role graph as an SVG file. It has no script, and its texts are escaped."""

from __future__ import annotations

from xml.sax.saxutils import escape

from uncaged_bundles.clean import clean_line

from .layout import GraphDrawing, GraphLine, GraphNode

STYLE = """
text { font: 14px system-ui, sans-serif; fill: #1c1f24; text-anchor: middle; dominant-baseline: middle }
.node { fill: #fff; stroke: #5c636e }
.line { fill: none; stroke: #5c636e } .taken { stroke: #1f5fd6; stroke-width: 2.5 }
.label { font-size: 12px; fill: #5c636e; paint-order: stroke; stroke: #fff; stroke-width: 4 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e8eb } .node { fill: #1e2126; stroke: #9aa3af }
  .line { stroke: #9aa3af } .taken { stroke: #7cabff } .label { fill: #9aa3af; stroke: #16181c }
}
""".strip()
ARROW = (
    '<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#5c636e"/></marker>'
)


def as_svg(drawing: GraphDrawing, *, title: str) -> str:
    """Return the file's text."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{drawing.width}" height="{drawing.height}" '
        f'viewBox="0 0 {drawing.width} {drawing.height}" role="img">',
        f"<title>{_text(title)}</title>",
        f"<style>{STYLE}</style>",
        f"<defs>{ARROW}</defs>",
        *(_line(one) for one in drawing.lines),
        *(_label(one) for one in drawing.lines if one.labels or one.times),
        *(_node(one) for one in drawing.nodes),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _node(node: GraphNode) -> str:
    left, top = node.x - node.width // 2, node.y - node.height // 2
    return (
        f'<rect class="node" x="{left}" y="{top}" width="{node.width}" height="{node.height}" rx="8"/>'
        f'<text x="{node.x}" y="{node.y}">{_text(node.text)}</text>'
    )


def _line(line: GraphLine) -> str:
    points = " ".join(f"{x},{y}" for x, y in line.points)
    kind = "line taken" if line.times else "line"
    return f'<polyline class="{kind}" points="{points}" marker-end="url(#arrow)"/>'


def _label(line: GraphLine) -> str:
    words = [", ".join(line.labels), f"{line.times}×" if line.times else ""]
    x, y = line.label_at
    return f'<text class="label" x="{x}" y="{y}">{_text(" ".join(filter(None, words)))}</text>'


def _text(text: str) -> str:
    return escape(clean_line(text))
