"""The function that performs each operation in a context."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import operations
from ..operations import Operation
from . import content, elements, navigation, offering, operable, speaking, viewing, waiting

if TYPE_CHECKING:
    from .context import DrivenContext

__all__ = ["PERFORMERS"]

Performer = Callable[["DrivenContext", Any], Awaitable[object]]
PERFORMERS: Mapping[type[Operation], Performer] = {
    operations.Tabs: waiting.list_tabs,
    operations.Open: navigation.open_tab,
    operations.Close: waiting.close,
    operations.Switch: waiting.switch,
    operations.Navigate: navigation.navigate,
    operations.Back: navigation.back,
    operations.Forward: navigation.forward,
    operations.Reload: navigation.reload,
    operations.Address: waiting.address,
    operations.ReadText: content.text,
    operations.ReadHtml: content.html,
    operations.ReadView: viewing.view,
    operations.ReadElements: operable.elements,
    operations.ReadForms: operable.forms,
    operations.ReadActions: offering.actions,
    operations.CallAction: offering.call,
    operations.Screenshot: content.screenshot,
    operations.Click: elements.click,
    operations.Follow: navigation.follow,
    operations.Fill: elements.fill,
    operations.Type: elements.type_text,
    operations.Press: elements.press,
    operations.Select: elements.select,
    operations.SetChecked: elements.check,
    operations.Upload: elements.upload,
    operations.Hover: elements.hover,
    operations.Drag: elements.drag,
    operations.Scroll: elements.scroll,
    operations.Zoom: waiting.zoom,
    operations.WaitFor: waiting.wait,
    operations.Speak: speaking.speak,
    operations.StopSpeaking: speaking.stop_speaking,
    operations.ShowStatus: speaking.show_status,
    operations.OpenSettings: speaking.settings,
}
