"""Table of the flows of the pack `browser`: operation, parameters, patterns, examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["FLOWS", "PageFlow", "descriptor_of"]

SITE = {"site": {"type": "string", "description": "an address, such as example.com"}}
NO_PARAMETERS: Mapping[str, Mapping[str, object]] = {}
POLITE = "(<Polite> | can you)?"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFlow:
    """One flow. operation: the fixed keys of its effect. examples: sentence and parameters."""

    name: str
    title: str
    description: str
    operation: Mapping[str, object]
    patterns: Sequence[str]
    examples: Sequence[tuple[str, Mapping[str, object]]]
    parameters: Mapping[str, Mapping[str, object]] = field(default_factory=lambda: NO_PARAMETERS)
    required: Sequence[str] = ()


FLOWS = (
    PageFlow(
        name="open-page",
        title="Open a page",
        description="Opens a site in the browser session.",
        operation={"do": "navigate", "timeout_s": 30},
        parameters=SITE,
        required=["site"],
        patterns=[
            f"{POLITE} (open | go to | navigate to | browse to | visit) $(site:Site) (please)?",
            f"{POLITE} (open | show) (the)? (page | site | website) $(site:Site) (please)?",
        ],
        examples=[
            ("open localhost:8000", {"site": "localhost:8000"}),
            ("go to example.com/news", {"site": "example.com/news"}),
        ],
    ),
    PageFlow(
        name="find-page",
        title="Find a page",
        description="Opens the page that a name means in a new tab of the browser session.",
        operation={"do": "find", "timeout_s": 30},
        parameters={"words": {"type": "string", "description": "the name of a page or site"}},
        required=["words"],
        patterns=[
            f"{POLITE} (go to | navigate to | browse to | visit) $(words:wildcard)",
            f"{POLITE} open (the)? (page | site | website | homepage) (of | for | called)? $(words:wildcard)",
        ],
        examples=[
            ("visit the python documentation", {"words": "the python documentation"}),
            ("open the website of the city library", {"words": "the city library"}),
        ],
    ),
    PageFlow(
        name="search-web",
        title="Search the web",
        description="Shows the results of a search in the current tab of the browser session.",
        operation={"do": "search", "timeout_s": 30},
        parameters={"words": {"type": "string", "description": "what to search for"}},
        required=["words"],
        patterns=[
            f"{POLITE} search (the)? (web | internet) for $(words:wildcard)",
            f"{POLITE} search for $(words:wildcard) (online | on the web | on the internet)",
        ],
        examples=[
            ("search the web for otters and kelp", {"words": "otters and kelp"}),
            ("search for train times on the internet", {"words": "train times"}),
        ],
    ),
    PageFlow(
        name="go-back",
        title="Go back",
        description="Goes back to the page before, in the browser session.",
        operation={"do": "back"},
        patterns=["go back (please)?", "(go)? back to the (last | previous) page"],
        examples=[("go back", {})],
    ),
    PageFlow(
        name="go-forward",
        title="Go forward",
        description="Goes forward to the next page of the history, in the browser session.",
        operation={"do": "forward"},
        patterns=["go forward (please)?"],
        examples=[("go forward", {})],
    ),
    PageFlow(
        name="reload-page",
        title="Reload the page",
        description="Loads the current page of the browser session again.",
        operation={"do": "reload", "timeout_s": 30},
        patterns=["(reload | refresh) (the | this)? page (please)?", "reload"],
        examples=[("reload the page", {})],
    ),
    PageFlow(
        name="scroll-page",
        title="Scroll the page",
        description="Scrolls the current page of the browser session.",
        operation={"do": "scroll"},
        parameters={
            "direction": {"enum": ["up", "down", "left", "right", "top", "bottom"]},
        },
        required=["direction"],
        patterns=[
            f"{POLITE} scroll (the page)? $(direction:Direction) (please)?",
            f"{POLITE} scroll to the $(direction:End) (of the page)? (please)?",
        ],
        examples=[
            ("scroll down", {"direction": "down"}),
            ("scroll to the top", {"direction": "top"}),
        ],
    ),
    PageFlow(
        name="zoom-page",
        title="Zoom the page",
        description="Zooms the current page of the browser session; 1 is its own size.",
        operation={"do": "zoom"},
        parameters={"factor": {"type": "number", "exclusiveMinimum": 0, "maximum": 5}},
        required=["factor"],
        patterns=["zoom (the page)? to $(factor:number)"],
        examples=[("zoom to 2", {"factor": 2})],
    ),
    PageFlow(
        name="follow-link",
        title="Follow a link",
        description="Follows a link of the current page by words of its text.",
        operation={"do": "follow", "timeout_s": 30},
        parameters={"words": {"type": "string"}},
        required=["words"],
        patterns=[f"{POLITE} (follow | open) the link $(words:wildcard) (please)?"],
        examples=[("follow the link Read more", {"words": "Read more"})],
    ),
    PageFlow(
        name="page-text",
        title="Read the page",
        description="Shows the visible text of the current page of the browser session.",
        operation={"do": "text"},
        patterns=["(read | show) (me)? (the | this) page", "what does (the | this) page say"],
        examples=[("read this page", {})],
    ),
    PageFlow(
        name="read-aloud",
        title="Read the page aloud",
        description="Reads the visible text of the current page aloud, with a voice of the browser.",
        operation={"do": "speak"},
        patterns=[
            f"{POLITE} read (me)? (the | this) page (aloud | out loud | to me) (please)?",
            f"{POLITE} read (me)? (the | this) page (aloud | out loud) to me (please)?",
        ],
        examples=[("read this page aloud", {}), ("can you read the page to me", {})],
    ),
    PageFlow(
        name="stop-reading",
        title="Stop reading aloud",
        description="Stops reading pages of the browser session aloud.",
        operation={"do": "stop_speaking"},
        patterns=[
            f"{POLITE} stop (reading | speaking) (the page | this page)? (aloud | out loud)? (please)?"
        ],
        examples=[("stop reading", {}), ("stop reading aloud", {})],
    ),
    PageFlow(
        name="browser-settings",
        title="Open the browser's settings",
        description="Opens the settings of the extension in the person's browser.",
        operation={"do": "settings"},
        patterns=[
            f"{POLITE} (open | show) (me)? (the)? (browser)? settings (please)?",
            f"{POLITE} (open | show) (me)? (the)? settings of (the | my) (browser | extension) (please)?",
        ],
        examples=[("open the settings", {}), ("show me the settings of the extension", {})],
    ),
    PageFlow(
        name="page-actions",
        title="Show what a page offers",
        description="Lists what can be done on the current page of the browser session: forms with"
        " their fields, buttons, links.",
        operation={"do": "actions", "timeout_s": 30},
        patterns=[
            f"{POLITE} (list | show) (me)? (the)? actions (of | on) (the | this) page (please)?",
            "what can (I | you) do (here | on this page)",
            "what does (the | this) page offer",
            "discover (the)? (page)? actions",
        ],
        examples=[("what can I do here", {}), ("show me the actions of this page", {})],
    ),
    PageFlow(
        name="list-tabs",
        title="List the tabs",
        description="Lists the tabs of the browser session.",
        operation={"do": "tabs"},
        patterns=["(list | show) (me)? (the | my)? (browser)? tabs", "which tabs are open"],
        examples=[("list my tabs", {})],
    ),
    PageFlow(
        name="switch-tab",
        title="Switch the tab",
        description="Switches to the tab whose title or address has these words.",
        operation={"do": "switch"},
        parameters={"words": {"type": "string"}},
        required=["words"],
        patterns=["switch to the tab $(words:wildcard)", "switch to the $(words:word) tab"],
        examples=[("switch to the tab shopping cart", {"words": "shopping cart"})],
    ),
    PageFlow(
        name="close-tab",
        title="Close the tab",
        description="Closes the current tab of the browser session.",
        operation={"do": "close"},
        patterns=["close (the | this) (current)? (tab | page)"],
        examples=[("close this tab", {})],
    ),
    PageFlow(
        name="press-button",
        title="Press a button",
        description="Clicks the button or link with this name on the current page.",
        operation={"do": "click"},
        parameters={"name": {"type": "string"}},
        required=["name"],
        patterns=["(click | press) (on)? (the)? $(name:wildcard) (button)?"],
        examples=[("press the Save button", {"name": "Save"})],
    ),
    PageFlow(
        name="fill-field",
        title="Fill a field",
        description="Writes text into the field with this label on the current page.",
        operation={"do": "fill"},
        parameters={"field": {"type": "string"}, "text": {"type": "string"}},
        required=["field", "text"],
        patterns=["(enter | type | write) $(text:wildcard) into (the)? $(field:wildcard) field"],
        examples=[("enter Ada into the name field", {"text": "Ada", "field": "name"})],
    ),
)


def descriptor_of(flow: PageFlow) -> dict[str, object]:
    """Return the descriptor of a flow."""
    return {
        "contract": 1,
        "name": flow.name,
        "displayName": flow.title,
        "description": flow.description,
        "kind": "web",
        "pack": "browser",
        "parameters": {
            "type": "object",
            "properties": dict(flow.parameters),
            "required": list(flow.required),
        },
        "policy": {"browser": {"profile": "kept", "private": True}},
        "patterns": list(flow.patterns),
        "examples": [
            {"sentence": sentence, "params": dict(params)} for sentence, params in flow.examples
        ],
    }
